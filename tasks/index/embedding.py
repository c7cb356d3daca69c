"""Texts made into unit vectors by a sentence-transformers model, each text once.

The only module that loads a model, and only when a text is missing from the cache: a run over an unchanged knowledge base
imports neither torch nor sentence-transformers.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kbgate.tasks.domain import Cases, Model
from kbgate.tasks.errors import InputError, Unmeasured
from kbgate.tasks.index.models import model_problem
from kbgate.tasks.index.vectors import VectorCache, key_of
from kbgate.tasks.records import digest
from kbgate.tasks.settings import Suite
from kbgate.tasks.tables import Floats, Rows, Vectors

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Text = tuple[str, str]
"""The prefix that the model wants, and the text."""
_SLICE = 2048
"""Texts embedded between two writes to the cache: what an interrupted run keeps."""
_REMEMBERED = 4096
_given: dict[tuple[str, bytes], Vectors] = {}
"""By weights and key: what the model gave in this process, the last so many; it need not be asked twice for one text."""


def embed_rows(suite: Suite, model: Model | None, rows: Rows, cache: Path) -> Vectors:
    """One unit vector per row of the index, float32 (rows, dimensions), in the rows' order; no dimensions without a model."""
    return _embed(suite, model, rows.texts, suite.embedding.passage_prefix, cache)


def embed_queries(suite: Suite, model: Model | None, cases: Cases, cache: Path) -> Vectors:
    """One unit vector per case, float32 (cases, dimensions), in the cases' order; no dimensions without a model."""
    return _embed(suite, model, [case.query for case in cases.values()], suite.embedding.query_prefix, cache)


def _embed(suite: Suite, model: Model | None, texts: Sequence[str], prefix: str, home: Path) -> Vectors:
    if model is None:
        return np.zeros((len(texts), 0), np.float32)
    # The batch size moves vectors by 2e-7 and no rank, so it is no part of the key.
    cache = cache_of(model, home)
    keys = [key_of(prefix, text) for text in texts]
    known = cache.read(keys)
    missing = {key: prefix + text for key, text in zip(keys, texts, strict=True) if key not in known}
    if missing:
        # Long texts together: a batch costs as much as its longest text.
        order = sorted(missing, key=lambda key: (-len(missing[key]), key))
        encoder = _load(model)
        for at in range(0, len(order), _SLICE):
            part = order[at : at + _SLICE]
            vectors = _encode(encoder, [missing[key] for key in part], suite.embedding.batch, at, len(order))
            _remember(model, part, vectors)
            cache.write(part, vectors)
            known.update(zip(part, vectors, strict=True))
    if len({v.shape for v in known.values()}) > 1:
        raise Unmeasured("the model gave vectors of different lengths; remove .kbgate/vectors and run again")
    return np.stack([known[key] for key in keys]) if keys else np.zeros((0, 0), np.float32)


def cache_of(model: Model, home: Path) -> VectorCache:
    """The cached vectors of one model."""
    return VectorCache(home, digest({"weights": model.weights, "normalise": True}, 32))


def remembers(model: Model, texts: Iterable[Text]) -> bool:
    """Whether the model gave the vectors of all these texts in this process."""
    return all((model.weights, key_of(*text)) in _given for text in texts)


def embed_anew(model: Model, texts: Sequence[Text], batch: int) -> Vectors:
    """One unit vector per text as the model gives it, whatever the cache holds."""
    keys = [key_of(*text) for text in texts]
    known = {key: _given[model.weights, key] for key in keys if (model.weights, key) in _given}
    missing = {key: "".join(text) for key, text in zip(keys, texts, strict=True) if key not in known}
    if missing:
        order = sorted(missing, key=lambda key: (-len(missing[key]), key))
        vectors = _encode(_load(model), [missing[key] for key in order], batch, 0, len(order))
        _remember(model, order, vectors)
        known.update(zip(order, vectors, strict=True))
    return np.stack([known[key] for key in keys]) if keys else np.zeros((0, 0), np.float32)


def precision_of(model: Model) -> str:
    """The kind of numbers the model computes with, such as float32."""
    return str(next(_load(model).parameters()).dtype).removeprefix("torch.")


def _remember(model: Model, keys: Sequence[bytes], vectors: Vectors) -> None:
    _given.update(zip(((model.weights, key) for key in keys), vectors, strict=True))
    for old in list(_given)[: max(len(_given) - _REMEMBERED, 0)]:
        del _given[old]


def time_queries(suite: Suite, model: Model, queries: Sequence[str]) -> Floats:
    """Milliseconds that each query takes to embed alone, warm, past the cache, in their order."""
    encoder, times = _load(model), []
    texts = [suite.embedding.query_prefix + query for query in queries]
    _encode(encoder, texts[:1], 1, 0, 1)
    for text in texts:
        begun = time.perf_counter()
        _encode(encoder, [text], 1, 0, 1)
        times.append((time.perf_counter() - begun) * 1000)
    return np.array(times, dtype=float)


@lru_cache(maxsize=2)
def _load(model: Model) -> SentenceTransformer:
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        return SentenceTransformer(
            str(model.folder),
            device="cpu",
            trust_remote_code=False,
            local_files_only=True,
            model_kwargs={"use_safetensors": True},
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError([model_problem(f"'{model.name}' cannot be loaded from {model.folder} ({error})")]) from None


def _encode(encoder: SentenceTransformer, texts: list[str], batch: int, done: int, total: int) -> Vectors:
    watched = sys.stderr.isatty() and not os.environ.get("CI")
    if watched and total > _SLICE:
        print(f"embedding {done + 1:,} to {done + len(texts):,} of {total:,} texts", file=sys.stderr)
    vectors = encoder.encode(
        texts, batch_size=batch, normalize_embeddings=True, convert_to_numpy=True, show_progress_bar=watched
    )
    vectors = np.asarray(vectors, dtype=np.float32)
    lengths = np.linalg.norm(vectors, axis=1)
    if len(vectors) != len(texts) or not np.isfinite(vectors).all() or not np.allclose(lengths, 1, atol=1e-3):
        raise Unmeasured("the model gave vectors that are missing, not finite or without direction")
    return vectors
