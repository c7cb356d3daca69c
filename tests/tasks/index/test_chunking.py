from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbgate.tasks.domain import Card, KnowledgeBase
from kbgate.tasks.index.chunking import CHUNKERS, chunk, recursive, whole
from kbgate.tasks.settings import Chunking, Embedding, Suite

TEXTS = st.text(st.sampled_from("ab.! \n\té中"), max_size=300)


@given(text=TEXTS, size=st.integers(16, 60), share=st.floats(0, 0.5))
def test_chunks_cover_the_text_and_respect_their_size(text: str, size: int, share: float) -> None:
    overlap = int(size * share)
    spans = recursive(text, size, overlap)
    covered = {place for start, end in spans for place in range(start, end)}
    assert {place for place, c in enumerate(text) if not c.isspace()} <= covered
    for start, end in spans:
        assert 0 < end - start <= size
        assert not text[start].isspace()
        assert not text[end - 1].isspace()
    for (start, end), (next_start, next_end) in pairwise(spans):
        assert start < next_start <= next_end
        assert end < next_end or end == next_end
        assert end - next_start <= overlap


@given(text=TEXTS, size=st.integers(16, 60))
def test_an_overlap_begins_at_a_word(text: str, size: int) -> None:
    spans = recursive(text, size, size // 2)
    for (_, end), (start, _) in pairwise(spans):
        if start < end:
            assert text[start - 1].isspace()


def test_the_largest_boundary_that_fits() -> None:
    text = "First paragraph here.\n\nSecond one is a little longer. It has two sentences."
    assert [text[s:e] for s, e in recursive(text, 60, 0)] == [
        "First paragraph here.",
        "Second one is a little longer. It has two sentences.",
    ]
    assert [text[s:e] for s, e in recursive(text, 35, 0)] == [
        "First paragraph here.",
        "Second one is a little longer.",
        "It has two sentences.",
    ]
    assert [text[s:e] for s, e in recursive(text, 35, 12)][2] == "longer. It has two sentences."


def test_a_word_longer_than_a_chunk_is_cut_hard() -> None:
    assert recursive("x" * 50, 20, 0) == [(0, 20), (20, 40), (40, 50)]


@pytest.mark.parametrize("method", list(CHUNKERS))
def test_every_method_handles_nothing(method: str) -> None:
    assert all(start <= end for start, end in CHUNKERS[method].split("", 32, 4))


def kb(**fields: Any) -> KnowledgeBase:
    return KnowledgeBase({"c": Card(**{"id": "c", "title": "", "text": "", **fields})})


def suite(**fields: Any) -> Suite:
    return Suite(folder=Path(), name="x", chunking=Chunking(size=40, overlap=0), **fields)


def test_title_and_description_stand_in_the_first_chunk_alone() -> None:
    chunks = chunk(suite(), kb(title="Title", text="One sentence of text here. Another sentence of it."))
    assert chunks.ids == ("c::00", "c::01")
    assert chunks.texts == ("Title\nOne sentence of text here.", "Another sentence of it.")
    described = chunk(suite(), kb(title="T", description="D", text="x"))
    assert described.texts == ("T\nD\nx",)


def test_a_card_that_is_only_a_title_can_still_be_found() -> None:
    chunks = chunk(suite(), kb(title="Only a title"))
    assert (chunks.ids, chunks.starts, chunks.ends, chunks.texts) == (("c::00",), (0,), (0,), ("Only a title",))


def test_spans_point_into_the_text_and_braces_are_only_text() -> None:
    text = "{title} {0} {chunk}"
    chunks = chunk(suite(embedding=Embedding(text="<{title}> {chunk}")), kb(title="{x}", text=text))
    assert chunks.texts == ("<{x}> {title} {0} {chunk}",)
    assert whole(text, 1, 0) == [(0, len(text))]
