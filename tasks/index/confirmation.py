"""Do the vectors come from the model? Those of a cache were only read: a sample is embedded again and held against them.

A digest shows that a slice of the cache is damaged; it does not show that the model gave what stands in it. Each exam draws
another sample of its rows and questions, with its run's id as the seed, so that nobody knows beforehand which vectors are
looked at. What the model gave in this very process is known already and costs nothing.
"""

from __future__ import annotations

import contextlib
import math
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np

from kbgate.tasks.domain import Cases, Material, Model
from kbgate.tasks.errors import Unmeasured, named
from kbgate.tasks.index.embedding import Text, cache_of, embed_anew, precision_of, remembers
from kbgate.tasks.index.process import Given, beside
from kbgate.tasks.settings import Suite
from kbgate.tasks.tables import Vectors

GOLDS = 8
"""Rows of gold cards that are in every sample of rows: what the questions live on."""
FAR: Mapping[str, float] = {"float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}
"""How far apart (Euclidean, of unit vectors) two embeddings of one text may be, by the numbers the model computes with.

Which texts share a batch moved the vectors of the default model by 1e-6, 1e-3 and 9e-3; the nearest vectors of two different
texts of the bundled suite are 7e-2 apart.
"""
_asked_beside: set[str] = set()
"""Weights of the models that a process beside this one was asked for."""
_BESIDE = 2000
"""Texts beyond which the model is loaded here: then it is embedding that takes the time, and it tells how far it is."""


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """A second look at a sample of the vectors of an exam."""

    texts: tuple[Text, ...]
    names: tuple[str, ...]
    """What each text is, for a sentence."""
    vectors: tuple[Vectors, ...]
    """What the exam has for each text."""
    model: Model
    batch: int
    cache: Path
    anew: Callable[[], Given]
    """Gives what the model gives for the texts."""


@contextlib.contextmanager
def begun(suite: Suite, material: Material, cases: Cases, seed: str, home: Path) -> Iterator[Look | None]:
    """Draw the sample and begin to embed it; None where nothing was embedded.

    `cases`: the golden set, and earlier wordings that were asked beside it; `home`: the folder of the vector cache. The first
    look of a process that has not loaded the model is taken by another process, beside the exam; later ones are taken here,
    where the model then stays loaded.
    """
    model = material.model
    rows, questions = _drawn(material, cases, Random(seed))
    if model is None or not rows + questions:
        yield None
        return
    prefixes, of_rows = suite.embedding, material.rows
    texts = [(prefixes.passage_prefix, of_rows.texts[place]) for place in rows]
    texts += [(prefixes.query_prefix, cases[name].query) for name in questions]
    names = [f"card '{of_rows.cards[place][0]}'" for place in rows] + [f"question '{name}'" for name in questions]
    vectors = [material.vectors[place] for place in rows] + [material.questions[name] for name in questions]
    with _asked(model, texts, suite.embedding.batch) as anew:
        yield Look(tuple(texts), tuple(names), tuple(vectors), model, suite.embedding.batch, cache_of(model, home).folder, anew)


def confirm(look: Look | None) -> None:
    """Raise `Unmeasured` unless the model gives, for each text of the sample, the vector that the exam has for it."""
    if look is None:
        return
    given, precision = look.anew()
    differing = _differing(look, range(len(look.texts)), given, precision)
    if differing:
        # The last word is the model's, loaded here: what was asked beside the exam may have computed in another way.
        places = list(differing)
        given, precision = embed_anew(look.model, [look.texts[place] for place in places], look.batch), precision_of(look.model)
        differing = _differing(look, places, given, precision)
    if differing:
        far = f"by up to {max(differing.values()):.2g} where {FAR.get(precision, FAR['float32']):g} is allowed"
        raise Unmeasured(
            f"the vector cache {look.cache} is not what {look.model.name} gives: of {len(look.texts)} texts embedded again "
            f"{len(differing)} differ, {far} ({named(look.names[place] for place in differing)}); "
            f"nothing was measured; next: rm -r {shlex.quote(str(look.cache))}, and the same command again"
        )


def _differing(look: Look, places: Sequence[int], given: Vectors, precision: str) -> dict[int, float]:
    """How far apart the vectors are, by place in the sample, of those that are farther apart than may be."""
    allowed = FAR.get(precision, FAR["float32"])
    apart = {place: _distance(look.vectors[place], vector) for place, vector in zip(places, given, strict=True)}
    return {place: distance for place, distance in apart.items() if not distance <= allowed}


def _distance(one: Vectors, other: Vectors) -> float:
    """How far apart two vectors are; infinitely, where they are not of one length or no numbers."""
    apart = float(np.linalg.norm(one.astype(float) - other)) if one.shape == other.shape else math.inf
    return math.inf if math.isnan(apart) else apart


@contextlib.contextmanager
def _asked(model: Model, texts: Sequence[Text], batch: int) -> Iterator[Callable[[], Given]]:
    """Whoever embeds the texts: this process, or one beside it."""

    def here() -> Given:
        return embed_anew(model, texts, batch), precision_of(model)

    loaded = remembers(model, texts) or "sentence_transformers" in sys.modules
    if loaded or model.weights in _asked_beside or len(texts) > _BESIDE:
        yield here
        return
    _asked_beside.add(model.weights)
    with beside(model, texts, batch) as there:
        yield there or here


def _drawn(material: Material, cases: Cases, draw: Random) -> tuple[list[int], list[str]]:
    """Places of rows, those of golds first, and ids of cases whose question was embedded."""
    count = int(material.sample)
    golds = np.flatnonzero(material.rows.of_cards({card for case in cases.values() for card in case.grades})).tolist()
    rows = draw.sample(golds, min(GOLDS, count, len(golds)))
    others = sorted(set(range(len(material.rows))) - set(rows))
    rows += draw.sample(others, min(count - len(rows), len(others)))
    embedded = sorted(material.questions)
    return rows, draw.sample(embedded, min(count, len(embedded)))
