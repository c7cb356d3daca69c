"""What a model reads of a text, and what it silently drops."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from kbgate.tasks.domain import Cases, Model
from kbgate.tasks.errors import InputError, Problem, counted, named
from kbgate.tasks.settings import Suite

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_DEFAULT = 512
_FEWEST = 3
"""A token between the two marks that stand at the ends."""


@cache
def _reader(folder: Path) -> tuple[Tokenizer | None, int]:
    """A model's tokenizer and how many tokens it reads; the tokenizer is None where the model has no fast one.

    Raises `InputError` where its files cannot be read.
    """
    from tokenizers import Tokenizer

    settings, path = folder / "sentence_bert_config.json", folder / "tokenizer.json"
    limit = _limit(settings) if settings.is_file() else _DEFAULT
    if not path.is_file():
        return None, limit
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing narrower
        raise InputError([Problem(str(path), 0, f"is not a tokenizer ({error}); install the model anew")]) from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer, limit


def _limit(path: Path) -> int:
    """How many tokens a model's settings say it reads."""
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
        limit = int(settings.get("max_seq_length") or _DEFAULT)
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise InputError([Problem(str(path), 0, f"does not say how much the model reads ({error}); install it anew")]) from None
    if limit < _FEWEST:
        raise InputError([Problem(str(path), 0, f"max_seq_length: needs {_FEWEST} or more, found {limit}")])
    return limit


def cut_off(model: Model | None, prefix: str, texts: Sequence[str]) -> tuple[int, list[str]]:
    """How many tokens a model reads, and of each text what lies beyond; "" where it reads all, or cannot be told.

    Without a model nothing is cut off, and the number is 0.
    """
    if model is None:
        return 0, ["" for _ in texts]
    tokenizer, limit = _reader(model.folder)
    if tokenizer is None:
        return limit, ["" for _ in texts]
    tails = []
    for text, encoded in zip(texts, tokenizer.encode_batch([prefix + text for text in texts]), strict=True):
        # The last place is the end mark's.
        over = len(encoded.ids) - limit
        end = encoded.offsets[limit - 2][1] if over > 0 else 0
        tails.append((prefix + text)[end:].strip() if over > 0 else "")
    return limit, tails


def questions_cut(suite: Suite, model: Model, cases: Cases) -> tuple[tuple[str, ...], str]:
    """The cases whose question is longer than what the model reads, so that its end is not asked; and a sentence of them."""
    if _reader(model.folder)[0] is None:
        return (), f"questions longer than the model reads were not counted: {model.name} has no fast tokenizer"
    limit, tails = cut_off(model, suite.embedding.query_prefix, [case.query for case in cases.values()])
    cut = tuple(name for name, tail in zip(cases, tails, strict=True) if tail)
    if not cut:
        return (), f"the model reads every question whole (its limit is {limit} tokens)"
    told = f"{counted(len(cut), 'question')} longer than the {limit} tokens the model reads, and not asked to the end"
    return cut, f"{told}: {named(cut)}"
