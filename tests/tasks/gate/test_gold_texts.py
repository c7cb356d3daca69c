"""A gold card that lost its text goes on ranking by its title: no figure shows it, and the gate does."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from kbgate.tasks.baseline.files import write_baseline
from kbgate.tasks.baseline.single_rows import accept_rows
from kbgate.tasks.conclusions import Verdict
from kbgate.tasks.errors import Refused
from tests.exams import CARDS, Desk, filler

HIT, MISS = filler("c0"), filler("c1", "c2", "c3", "c4", "c5", "c0")
TEXT = "Employees may take twelve days of leave a year, and carry four over until the end of March. "


def text_of(card: str) -> str:
    return f"{card}: " + TEXT * 4


@pytest.fixture
def faq(desk: Desk) -> Desk:
    """Twelve answers of a few lines each, each asked for once and found at once; accepted."""
    desk.cards = [{"id": card, "title": f"Leave {card}", "text": text_of(card)} for card in CARDS]
    for card in CARDS:
        desk.case(f"q-{card}", gold=card)
    desk.accept(answers())
    return desk


def answers(**given: Any) -> dict[str, Any]:
    return {f"q-{card}": filler(card) for card in CARDS} | given


def write(desk: Desk, text: str | None, *cards: str, **fields: str) -> None:
    """Give these cards another text; None takes it out."""
    for card in desk.cards:
        if card["id"] in (cards or CARDS):
            card |= {**fields, "text": text or ""}


def anew(desk: Desk, given: dict[str, Any]) -> None:
    """A first baseline, as if there had been none."""
    for file in desk.folder.glob("baseline*"):
        file.unlink()
    desk.accept(given)


def told(verdict: Verdict) -> list[str]:
    return [f"{reason.level}: {reason.sentence}" for reason in verdict.reasons if reason.check == "gold_text"]


@pytest.mark.parametrize(
    ("left", "verdict"),
    [("", "BLOCK"), (text_of("c0")[:36], "BLOCK"), (text_of("c0")[:40], "WARN"), (text_of("c0")[:180], "WARN"),
     (text_of("c0")[:190], "PASS"), (text_of("c0") + TEXT, "PASS"), (" \n\u200b\u00a0 \ufeff", "BLOCK"), ("---\n***", "BLOCK"),
     (f"Leave.{' ' * 400}", "BLOCK"), (f"Leave.{chr(0x200B) * 400}", "BLOCK")],
)  # fmt: skip
def test_what_is_left_of_a_text_decides(left: str, verdict: str, faq: Desk) -> None:
    assert len(text_of("c0")) == 372
    write(faq, left, "c0")
    given = faq.judge(answers())
    assert given.name == verdict, told(given)


def test_the_sentence_names_card_lengths_and_questions(faq: Desk) -> None:
    write(faq, None, "c0")
    write(faq, "See the intranet.", "c3", "c4")
    assert told(faq.judge(answers())) == [
        "critical: 1 gold card without text: c0 (0 of 372 characters), the answer of q-c0",
        "critical: 2 gold cards with less than a tenth of their text: c3 (17 of 372 characters), c4 (17 of 372 characters), "
        "the answer of q-c3, q-c4",
    ]


def test_a_first_run_blocks_on_a_gold_that_says_nothing(desk: Desk) -> None:
    desk.cards[0] |= {"title": "Leave", "text": ""}
    desk.case("q")
    verdict = desk.judge({"q": HIT})
    assert (verdict.name, verdict.headline) == ("BLOCK", "1 gold card without text: c0, the answer of q")
    assert "baseline update" not in " ".join(reason.sentence for reason in verdict.reasons)


def test_a_table_that_is_all_description_has_its_text_there_until_it_loses_one(desk: Desk) -> None:
    desk.cards[0] |= {"title": "Leave", "text": "", "description": "Days of leave by grade"}
    desk.case("q")
    desk.accept({"q": HIT})
    assert desk.judge({"q": HIT}).name == "PASS"
    desk.cards[0]["description"] = ""
    assert desk.judge({"q": HIT}).name == "BLOCK"


def test_a_description_is_no_text_where_there_was_one(faq: Desk) -> None:
    write(faq, None, "c0", description="Days of leave by grade")
    assert faq.judge(answers()).name == "BLOCK"


def test_one_of_two_answers_that_never_had_text_is_told_and_blocks_nothing(desk: Desk) -> None:
    desk.cards[1] |= {"title": "Leave", "text": ""}
    desk.case("q", expected=[], must_cite_one_of=["c0", "c1"])
    desk.accept({"q": HIT})
    verdict = desk.judge({"q": HIT})
    assert (verdict.name, told(verdict)) == (
        "PASS", ["advisory: 1 gold card without text, beside another that answers the same: c1, the answer of q"],
    )  # fmt: skip
    desk.case("r", expected=["c0", "c1"])
    assert desk.judge({"q": HIT, "r": HIT}).name == "BLOCK"


def test_one_of_two_answers_that_lost_its_text_blocks(faq: Desk) -> None:
    faq.case("both", expected=[], must_cite_one_of=["c0", "c1"])
    write(faq, None, "c1")
    assert "both" in told(faq.judge(answers(both=HIT)))[0]


def test_all_answers_replaced_by_one_page_of_the_same_length_block(faq: Desk) -> None:
    """Titles still stand at their heads: the pages are not the same to the letter."""
    page = "Please enable JavaScript to see this page, or turn to the help desk of your department. " * 4
    for card in CARDS:
        write(faq, f"Leave {card}: {page}", card)
    verdict = faq.judge(answers())
    assert (verdict.name, told(verdict)[0][:85]) == (
        "BLOCK", "critical: 12 gold cards with the same text as others that had texts of their own: c0 ",
    )  # fmt: skip


def test_two_cards_that_an_editor_made_one_of_warn(faq: Desk) -> None:
    write(faq, "Leave is twelve days, or fourteen above grade six; four are carried over until March. " * 4, "c0", "c1")
    verdict = faq.judge(answers())
    assert (verdict.name, len(told(verdict))) == ("WARN", 1)


def test_an_excerpt_that_still_stands_there_is_an_answer_however_short_its_card(faq: Desk) -> None:
    excerpt = "twelve days of leave"
    for row in faq.cases:
        row.pop("must_cite_one_of")
        row["evidence"] = [{"card": row["id"][2:], "text": excerpt}]
    anew(faq, answers())
    write(faq, excerpt, "c0")
    assert told(faq.judge(answers())) == []
    write(faq, "eleven days of leave", "c0")
    verdict = faq.judge(answers())
    assert [reason.check for reason in verdict.reasons] == ["vanished_gold"]


def test_evidence_by_offsets_says_not_what_stood_there(faq: Desk) -> None:
    for row in faq.cases:
        row.pop("must_cite_one_of")
        row["evidence"] = [{"card": row["id"][2:], "start": 0, "end": 10}]
    anew(faq, answers())
    write(faq, "Nothing to see", "c0")
    assert faq.judge(answers()).name == "BLOCK"


def test_cards_that_are_no_gold_may_be_emptied(faq: Desk) -> None:
    faq.cases = [row for row in faq.cases if row["id"] != "q-c0"]
    given = {case: ranking for case, ranking in answers().items() if case != "q-c0"}
    anew(faq, given)
    write(faq, None, "c0")
    assert told(faq.judge(given)) == []


def test_the_fast_subset_knows_of_every_gold(faq: Desk) -> None:
    write(faq, None, "c7")
    assert faq.judge({"q-c0": HIT}, mode="fast").name == "BLOCK"


def test_an_allowance_excuses_a_case_until_its_day(faq: Desk) -> None:
    write(faq, None, "c0")
    faq.settings += '[[allow]]\ncase = "q-c0"\ncheck = "gold_text"\nreason = "new text on Monday"\nuntil = 2026-06-01\n'
    assert faq.judge(answers()).name == "PASS"
    faq.today = dt.date(2026, 6, 2)
    assert faq.judge(answers()).name == "BLOCK"


# ---------------------------------------------------------------- acceptance


def test_a_shrunken_knowledge_base_is_never_offered_acceptance(faq: Desk) -> None:
    """All answers emptied: titles alone match questions better than ever, more cases pass than fail."""
    faq.accept(answers(**{f"q-c{n}": MISS for n in range(5, 12)}), accept_regression=True, anchor=True)
    better = answers(**{"q-c1": filler("c0", "c2", "c3", "c4", "c5", "c1")})
    assert "--accept-regression" in faq.judge(better).headline
    write(faq, None)
    verdict = faq.judge(better)
    sentences = " | ".join(reason.sentence for reason in verdict.reasons)
    assert "1 case newly failing: q-c1; 7 newly passing; look first at what is missing: 12 gold cards without text" in sentences
    assert "accept" not in sentences


def test_a_knowledge_base_that_lost_a_tenth_of_its_other_cards_is_no_better_index(faq: Desk) -> None:
    spare = [{"id": f"s{n}", "title": f"s{n}", "text": text_of(f"s{n}")} for n in range(20)]
    faq.cards += spare
    faq.accept(answers(**{f"q-c{n}": MISS for n in range(5, 12)}), accept_regression=True, anchor=True)
    faq.cards = faq.cards[:-4]
    better = answers(**{"q-c1": filler("c0", "c2", "c3", "c4", "c5", "c1")})
    assert "missing: the knowledge base has 28 cards with text and had 32 in the baseline" in faq.judge(better).headline


def test_an_old_baseline_is_not_renewed_over_it(faq: Desk) -> None:
    faq.today = dt.date(2026, 12, 1)
    assert "baseline update" in faq.judge(answers()).headline
    write(faq, None, "c0")
    (age,) = (r.sentence for r in faq.judge(answers()).reasons if r.check == "baseline_age")
    assert "baseline update" not in age


@pytest.mark.parametrize("text", [None, "Gone."])
def test_a_question_without_an_answer_is_never_accepted(text: str | None, faq: Desk) -> None:
    write(faq, text, "c0")
    with pytest.raises(Refused, match="the answer of q-c0; put it back, give these cases another gold"):
        write_baseline(faq.evaluation(answers()), "trust me", accept_regression=True)
    with pytest.raises(Refused, match="the answer of q-c0; put it back"):
        accept_rows(faq.evaluation(answers()), ["q-c0"], "trust me")
    accept_rows(faq.evaluation(answers()), ["q-c1"], "this one is as it was")


def test_a_refusal_offers_nothing_either(faq: Desk, tmp_path: Path) -> None:
    faq.cards += [{"id": f"s{n}", "title": f"s{n}", "text": text_of(f"s{n}")} for n in range(20)]
    faq.accept(answers())
    faq.cards = faq.cards[:-4]
    with pytest.raises(Refused, match=r"look first at what is missing: the knowledge base has 28"):
        write_baseline(faq.evaluation(answers(**{"q-c0": MISS})), "a reason", accept_regression=False)
