"""A figure of the whole run has a baseline, of the same cases, and a tolerance on it acts."""

from __future__ import annotations

import pytest

from kbgate.tasks.baseline.files import replace_files
from kbgate.tasks.conclusions import Level, VerdictName
from kbgate.tasks.errors import BaselineDamaged, Refused
from kbgate.tasks.inputs.suite import load_suite
from kbgate.tasks.schema import Mean
from kbgate.tasks.tables import Figure, Hits
from tests.exams import CARDS, DEFAULT, Desk, filler

AUROC = Figure("auroc")


def likeness(cosine: float, first: str = "c0") -> Hits:
    """A whole ranking whose best card has this cosine."""
    return Hits.of((card, round(cosine - place / 100, 6)) for place, card in enumerate(filler(first)))


GIVEN = {"a": likeness(0.9), "b": likeness(0.8), "x": likeness(0.3), "y": likeness(0.2)}
ALIKE = {"a": likeness(0.9), "b": likeness(0.8), "x": likeness(0.95), "y": likeness(0.85)}


@pytest.fixture
def asked(desk: Desk) -> Desk:
    desk.gates += "\nauroc = {tolerance = 0.1}"
    desk.case("a")
    desk.case("b")
    desk.case("x", kind="no_match")
    desk.case("y", kind="no_match")
    return desk


def test_what_it_is_made_from_is_stored_with_it(asked: Desk) -> None:
    accepted = asked.accept(GIVEN)
    assert accepted.summary.aggregates == {"auroc": Mean(mean=1.0, n=4)}
    assert {name: row.cosine for name, row in accepted.cases.items()} == {"a": 0.9, "b": 0.8, "x": 0.3, "y": 0.2}


def test_a_tolerance_on_it_acts(asked: Desk) -> None:
    asked.accept(GIVEN)
    assert asked.judge(GIVEN).name == VerdictName.PASS
    verdict = asked.judge(ALIKE)
    assert verdict.name == VerdictName.BLOCK
    assert verdict.reasons[0].sentence == "auroc fell by 0.750 (1.000 to 0.250, no interval); 0.1 is allowed, n = 4"


@pytest.mark.parametrize("rule", ["significant", "noninferior"])
def test_a_rule_that_needs_an_interval_is_never_green(rule: str, asked: Desk) -> None:
    asked.accept(GIVEN)
    asked.gates = asked.gates.replace("auroc = {tolerance = 0.1}", f'auroc = {{tolerance = 0.1, rule = "{rule}"}}')
    for given in (GIVEN, ALIKE) if rule == "noninferior" else (ALIKE,):
        assert not asked.judge(given).name.green


def test_new_and_edited_cases_stay_out_of_it(asked: Desk) -> None:
    """Nineteen easy new questions would lift it as they lift any mean."""
    asked.accept(GIVEN)
    for n in range(19):
        asked.case(f"easy{n}", kind="no_match")
    row = asked.exam({**ALIKE, **{f"easy{n}": likeness(0.01) for n in range(19)}}).comparison.figure("exact", AUROC)
    assert (row.current, row.baseline, row.n) == (0.25, 1.0, 4)


def test_an_answer_that_is_gone_counts_as_the_worst(asked: Desk) -> None:
    asked.accept(GIVEN)
    row = asked.exam({**GIVEN, "a": []}).comparison.figure("exact", AUROC)
    assert (row.current, row.baseline, row.n) == (0.5, 1.0, 4)


def secret(desk: Desk, name: str, hidden: bool = True) -> Hits:
    """A case whose answer is one card that its asker may not see, or may; and what it is answered."""
    for card in desk.cards:
        card["domain"] = "secret" if hidden and card["id"] == "c9" else "open"
    desk.case(name, gold="c9", entitled={"domain": "open"})
    seen = [card for card in filler("c9") if not (hidden and card == "c9")]
    return Hits.of((card, round(0.25 - place / 100, 6)) for place, card in enumerate(seen))


def test_a_question_whose_asker_may_see_none_of_its_gold_is_no_part_of_it(asked: Desk) -> None:
    """Whatever it finds, what it looks like says nothing of questions with an answer, nor of those without one."""
    answers = {**GIVEN, "hidden": secret(asked, "hidden")}
    assert asked.accept(answers).summary.aggregates == {"auroc": Mean(mean=1.0, n=4)}
    comparison = asked.exam(answers).comparison
    row = comparison.figure("exact", AUROC)
    assert (row.current, row.baseline, row.n) == (1.0, 1.0, 4)
    assert comparison.figure("exact", Figure("suggested_min_similarity")).n == 4


@pytest.mark.parametrize(
    ("then", "now", "expected"),
    [
        (False, False, (0.833333, 0.833333, 5)),
        (True, False, (1.0, 1.0, 4)),
        (False, True, (0.666667, 0.833333, 5)),
        (True, True, (1.0, 1.0, 4)),
    ],
)
def test_gold_that_a_label_shows_or_hides_is_compared_where_it_was_seen(
    then: bool, now: bool, expected: tuple[float, float, int], asked: Desk
) -> None:
    """Shown since, it has nothing to be compared with; hidden since, it is a loss that must not leave the figure."""
    asked.accept({**GIVEN, "gold": secret(asked, "gold", then)})
    row = asked.exam({**GIVEN, "gold": secret(asked, "gold", now)}).comparison.figure("exact", AUROC)
    assert row.current is not None
    assert row.baseline is not None
    assert (round(row.current, 6), round(row.baseline, 6), row.n) == expected


def test_what_an_older_version_of_it_made_is_no_damage_and_is_made_anew(asked: Desk) -> None:
    """From the same rows on both sides; only the anchor's, of which no rows are kept, is no more to be compared with."""
    answers = {**GIVEN, "hidden": secret(asked, "hidden")}
    accepted = asked.accept(answers)
    suite, summary = load_suite(asked.folder), accepted.summary
    assert asked.exam(answers).comparison.figure("exact", AUROC).since_anchor == 0
    made = {"auroc": Mean(mean=0.8, n=5)}
    older = {
        "metric_versions": {**summary.metric_versions, "auroc": 1},
        "aggregates": made,
        "anchor": summary.anchor.model_copy(update={"aggregates": made}),
    }
    replace_files(suite, summary.model_copy(update=older), accepted.cases, accepted.cards)
    row = asked.exam(answers).comparison.figure("exact", AUROC)
    assert (row.current, row.baseline, row.delta, row.since_anchor) == (1.0, 1.0, 0.0, None)
    verdict = asked.judge(answers)
    assert [reason.check for reason in verdict.reasons if reason.level != Level.ADVISORY] == ["unseen_gold"]
    with pytest.raises(Refused, match="the anchor holds no auroc to add up drops from"):
        asked.accept(answers)
    asked.gates = DEFAULT
    anew = asked.accept(answers).summary
    assert (anew.aggregates, anew.anchor.aggregates) == ({"auroc": Mean(mean=1.0, n=4)}, {})


def test_a_figure_of_the_run_that_is_not_that_of_its_rows_is_damage(asked: Desk) -> None:
    accepted = asked.accept(GIVEN)
    forged = accepted.summary.model_copy(update={"aggregates": {"auroc": Mean(mean=0.8, n=4)}})
    with pytest.raises(BaselineDamaged, match="holds means that are not those of"):
        replace_files(load_suite(asked.folder), forged, accepted.cases, accepted.cards)


def test_small_drops_of_it_add_up_to_the_anchor(asked: Desk) -> None:
    asked.gates = "newly_failing = {ceiling = 1.0}\nhit = {floor = 0.01}\nauroc = {tolerance = 0.3}"
    asked.accept(GIVEN)
    asked.accept({**GIVEN, "x": likeness(0.85)})
    with pytest.raises(Refused, match=r"auroc is 0.750 worse than the anchor"):
        asked.accept({**ALIKE}, accept_regression=True)


def test_a_baseline_without_it_leaves_it_unjudged_and_says_so(asked: Desk) -> None:
    """One that was rewritten from the schema before does not hold what it is made from."""
    given = {name: filler(CARDS[0]) if name in "ab" else [] for name in GIVEN}
    gates, asked.gates = asked.gates, DEFAULT
    asked.accept(given)
    asked.gates = gates
    assert any("auroc" in reason.sentence and "new" in reason.sentence for reason in asked.judge(GIVEN).reasons)
