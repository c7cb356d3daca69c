"""A card that a run has seen is put back as it was."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from kbgate.tasks.domain import Cards
from kbgate.tasks.runs.archive import keep_cards, recall_cards
from tests.exams import Desk


def hashes(cards: Cards) -> list[str]:
    return [card.hash for card in cards.values()]


def test_a_card_is_recalled_as_it_was_kept(desk: Desk, tmp_path: Path) -> None:
    desk.cards[0] |= {"valid_until": "2026-05-31", "topics": ["a", "b"], "metadata": {"n": 3, "to": ["x"]}}
    desk.case("a")
    cards = desk.exam({"a": []}).kb.cards
    keep_cards(tmp_path, "desk", cards)
    recalled = recall_cards(tmp_path, ("desk",), hashes(cards))
    assert len(recalled) == 12
    assert recalled[cards["c0"].hash] == dataclasses.replace(cards["c0"], file="", line=0)
    assert recalled[cards["c0"].hash].valid_until == "2026-05-31"


def test_what_is_kept_is_not_kept_again(desk: Desk, tmp_path: Path) -> None:
    desk.case("a")
    keep_cards(tmp_path, "desk", desk.exam({"a": []}).kb.cards)
    keep_cards(tmp_path, "desk", desk.exam({"a": []}).kb.cards)
    assert len(list((tmp_path / "cards" / "desk").iterdir())) == 1
    desk.cards[3]["text"] = "changed"
    keep_cards(tmp_path, "desk", desk.exam({"a": []}).kb.cards)
    assert len(list((tmp_path / "cards" / "desk").iterdir())) == 2


def test_what_cannot_be_read_is_as_if_never_seen(desk: Desk, tmp_path: Path) -> None:
    desk.case("a")
    cards = desk.exam({"a": []}).kb.cards
    assert recall_cards(tmp_path, ("desk",), hashes(cards)) == {}
    keep_cards(tmp_path, "desk", cards)
    (kept,) = (tmp_path / "cards" / "desk").iterdir()
    kept.write_bytes(b"torn")
    assert recall_cards(tmp_path, ("desk",), hashes(cards)) == {}
    keep_cards(tmp_path, "desk", cards)
    assert len(recall_cards(tmp_path, ("desk",), hashes(cards))) == 12
