"""Rejected cards: as many as the suite allows, and never one that a question needs."""

from __future__ import annotations

from typing import Any

import pytest

from kbgate.tasks.conclusions import Verdict
from kbgate.tasks.errors import InputError
from kbgate.tasks.gate.policy import policy_fingerprint
from kbgate.tasks.inputs.suite import load_suite
from tests.exams import CARDS, Desk, filler

HIT = filler("c0")


def accepted(desk: Desk, share: float) -> dict[str, list[str]]:
    """Twelve cards; twenty questions whose gold is c0, and which have two others in their top 3."""
    for n in range(20):
        desk.case(f"q{n:02d}")
    desk.settings += f'[kb]\non_bad_card = "reject"\nrejected_share = {share}\n'
    rankings = {f"q{n:02d}": HIT for n in range(20)}
    desk.accept(rankings)
    return rankings


def told(verdict: Verdict) -> list[str]:
    return [f"{reason.level}: {reason.sentence}" for reason in verdict.reasons if reason.check == "rejected"]


@pytest.mark.parametrize(
    ("share", "bad", "level", "allowed"),
    [
        (0.0, 1, "critical", "none may be"),
        (0.07, 1, "critical", "a share of 0.07 is allowed"),  # 0.91 of a card
        (0.08, 1, "supporting", "a share of 0.08 is allowed"),
        (0.08, 2, "critical", "a share of 0.08 is allowed"),
        (0.5, 12, "supporting", "a share of 0.5 is allowed"),  # exactly half of 24
        (0.5, 13, "critical", "a share of 0.5 is allowed"),
    ],
)
def test_as_many_may_be_rejected_as_the_share_allows(share: float, bad: int, level: str, allowed: str, desk: Desk) -> None:
    rankings = accepted(desk, share)
    desk.cards += [{"id": f"bad{n}"} for n in range(bad)]
    verdict = desk.judge(rankings)
    assert told(verdict) == [
        f"{level}: {bad} of {12 + bad} cards rejected, {allowed}; first: cards.jsonl:13: 'text' is missing"
    ]
    assert verdict.name == ("BLOCK" if level == "critical" else "WARN")


def spoil(desk: Desk, card: str, **fields: Any) -> None:
    desk.cards = [{**row, **fields} if row["id"] == card else row for row in desk.cards]


@pytest.mark.parametrize("card", ["c0", HIT[1]])
def test_a_card_that_a_gold_or_an_accepted_top_k_names_blocks_whatever_the_share(card: str, desk: Desk) -> None:
    rankings = accepted(desk, 1.0)
    spoil(desk, card, tier="bronze")
    verdict = desk.judge(rankings)
    assert told(verdict)[0].startswith(
        f"critical: 1 rejected card that a gold or an accepted top k names: {card}; first: cards"
    )
    assert verdict.name == "BLOCK"


@pytest.mark.parametrize(
    ("header", "row", "first"),
    [
        ("id,text", '"bad,never closed', "14: is no CSV row"),  # and forty rows after it
        ("id,text", 'bad,"one\nmore,two\n",three', "14: has 3 fields where the header has 2"),
        ("id,text,text", "", "1: the column 'text' is there twice"),  # which of them is every card's?
    ],
)
def test_what_takes_other_cards_along_blocks_whatever_the_share(header: str, row: str, first: str, desk: Desk) -> None:
    rankings = accepted(desk, 1.0)
    desk.settings = desk.settings.replace("[kb]\n", '[kb]\npath = "cards.csv"\n')
    width = header.count(",")
    rows = [card + f",{card}" * width for card in (*CARDS, *(f"n{n}" for n in range(40)))]
    (desk.folder / "cards.csv").write_text("\n".join([header, *rows[:12], *filter(None, [row]), *rows[12:]]))
    verdict = desk.judge(rankings)
    (sentence,) = told(verdict)
    assert sentence.startswith("critical: at least 1 of ")
    assert f"nobody knows how many more, so no share allows them; first: cards.csv:{first}" in sentence
    assert verdict.name == "BLOCK"


def test_a_row_that_is_bad_for_itself_takes_none_along(desk: Desk) -> None:
    rankings = accepted(desk, 0.1)
    desk.settings = desk.settings.replace("[kb]\n", '[kb]\npath = "cards.csv"\n')
    rows = [f'{card},"{card}\nof two lines"' for card in CARDS]
    (desk.folder / "cards.csv").write_text("\n".join(["id,text", *rows[:6], "bad,one,two", *rows[6:]]))
    assert told(desk.judge(rankings)) == [
        "supporting: 1 of 13 cards rejected, a share of 0.1 is allowed; first: cards.csv:14: "
        "has 3 fields where the header has 2"
    ]


def test_a_card_that_nothing_names_is_within_the_share(desk: Desk) -> None:
    rankings = accepted(desk, 1.0)
    spoil(desk, "c11", tier="bronze")
    assert (desk.judge(rankings).name, len(told(desk.judge(rankings)))) == ("WARN", 1)


def test_of_two_cards_of_one_id_nobody_knows_which_is_the_gold(desk: Desk) -> None:
    rankings = accepted(desk, 1.0)
    desk.cards.append({"id": "c0", "text": "something else"})
    verdict = desk.judge(rankings)
    assert verdict.name == "BLOCK"
    assert "id 'c0' is taken by cards.jsonl:1" in told(verdict)[0]


@pytest.mark.parametrize("nameless", [{"text": "c1", "id": 7}, {"text": "c1", "id": None}, {"text": "c1", "id": ""}])
def test_a_card_of_unknown_id_may_be_the_one_that_is_missing(nameless: dict[str, Any], desk: Desk) -> None:
    rankings = accepted(desk, 1.0)
    desk.cards.append(nameless)
    assert desk.judge(rankings).name == "WARN"
    lost = HIT[1]
    desk.cards = [row for row in desk.cards if row["id"] != lost]
    verdict = desk.judge(rankings)
    assert told(verdict)[0].startswith(
        f"critical: 1 rejected card of unknown id, while a gold or an accepted top k names {lost}, which is not there; first: "
    )
    assert verdict.name == "BLOCK"


def test_a_gold_whose_card_was_rejected_is_told_so(desk: Desk) -> None:
    rankings = accepted(desk, 1.0)
    spoil(desk, "c0", tier="bronze")
    (lost,) = [reason.sentence for reason in desk.judge(rankings).reasons if reason.check == "vanished_gold"]
    assert "card 'c0' (rejected at cards.jsonl:1: tier" in lost
    desk.cards.append({"id": "new"})
    desk.case("fresh", gold="new")
    with pytest.raises(InputError, match=r"gold 'new' of case 'fresh' was rejected at cards\.jsonl:13: 'text' is missing"):
        desk.judge({**rankings, "fresh": HIT})


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("rejected_share = 0.1", 'nothing is rejected where on_bad_card = "refuse"'),
        ('on_bad_card = "reject"\nrejected_share = nan', "kb.rejected_share"),
        ('on_bad_card = "reject"\nrejected_share = -0.1', "kb.rejected_share"),
        ('on_bad_card = "reject"\nrejected_share = 1.1', "kb.rejected_share"),
    ],
)
def test_a_share_that_cannot_be_meant_is_refused(written: str, told: str, desk: Desk) -> None:
    desk.settings += f"[kb]\n{written}\n"
    with pytest.raises(InputError, match=told):
        desk.judge({})


def test_the_share_is_policy_and_where_it_is_0_the_policy_is_what_it_was(desk: Desk) -> None:
    marks = []
    for written in ("", '[kb]\non_bad_card = "reject"\n', '[kb]\non_bad_card = "reject"\nrejected_share = 0.1\n'):
        (desk.folder / "suite.toml").write_text(f'name = "desk"\n{written}')
        marks.append(policy_fingerprint(load_suite(desk.folder)))
    assert marks[0] == marks[1] != marks[2]
