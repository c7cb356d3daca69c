"""The report as a person reads it: a golden file, and hostile texts made harmless."""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from kbgate.reports.render import render_comment, render_markdown, safe_text
from kbgate.tasks.findings import Diagnosis, Doubt, Finding, Group, Pattern
from kbgate.tasks.outcomes import PullRequest
from kbgate.tasks.runs.document import verdict_document
from tests.exams import Desk, filler

GOLDEN = Path(__file__).parent / "report.golden.md"
HIT, NEAR, MISS = filler("c0"), filler("c1", "c2", "c3", "c0"), filler("c1", "c2", "c3", "c4", "c5", "c0")
HOSTILE = (
    "</td><script>alert(1)</script> | [x](javascript:alert(1)) ![i](http://evil.example/a.png) "
    "@everyone #1 `a` www.evil.example"
)


WHY = Diagnosis(
    findings=(
        Finding(
            "q00",
            "c0",
            "displaced",
            "displaced by c1; without c1 'c0' stands at 3",
            True,
            ("c1",),
            {"rank now": 6},
            (("c1", "One"),),
        ),
        Finding("bird", "c0", "text_lost", "'c0' has no text; not proven: its earlier text is not kept here", False, ("c0",)),
        Finding("new", "c0", "unknown", "no single change brings 'c0' back", False),
    ),
    groups=(
        Group("displaced", "1 displaced by c1", ("q00",)),
        Group("unknown", "1 × no single change brings the gold back", ("new",)),
    ),
    patterns=(Pattern("drift", "2 fell although no card changed", "the day of validity", 2, 0.5),),
    left_out=4,
    doubts=(Doubt("new", "c0", 6, "c3", 2, 0.91),),
)


def render(desk: Desk, rankings: dict[str, list[str]]) -> str:
    evaluation = desk.evaluation(rankings)
    return render_markdown(evaluation, verdict_document(evaluation))


def red(desk: Desk) -> str:
    desk.cards[9]["tier"] = "gold"
    for n in range(20):
        desk.case(f"q{n:02d}", language="en" if n % 2 else "es-419")
    desk.case("bird", canary=True, query="How long does it keep?")
    desk.case("curated", gold="c9", query="Which one is right?")
    desk.case("none", kind="no_match")
    rankings = {f"q{n:02d}": HIT for n in range(20)} | {"bird": HIT, "curated": filler("c9"), "none": HIT}
    desk.accept({**rankings, "q05": MISS})
    desk.case("new", query="Is it new?")
    changed = {"q00": MISS, "q01": NEAR, "bird": MISS, "curated": filler("c1", "c2", "c3", "c4", "c9"), "new": MISS}
    evaluation = dataclasses.replace(desk.evaluation({**rankings, **changed}), diagnosis=WHY)
    text = render_markdown(evaluation, verdict_document(evaluation))
    return text.replace(str(desk.folder), "suites/desk")


def test_the_report_is_the_golden_file(desk: Desk) -> None:
    report = red(desk)
    report = re.sub(r"baseline fingerprint \| [0-9a-f]{16}", "baseline fingerprint | " + "0" * 16, report)
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(report, encoding="utf-8")
    assert report == GOLDEN.read_text(encoding="utf-8"), "UPDATE_GOLDEN=1 rewrites the file; read the difference first"


def test_the_first_line_is_the_verdict_and_its_reason(desk: Desk) -> None:
    first = red(desk).split("\n")[0]
    assert first.startswith("# BLOCK: 3 cases newly failing: bird, curated, q00")


def test_report_and_comment_say_whether_the_base_supplied_the_truth(desk: Desk) -> None:
    desk.case("a")
    desk.case("b")
    for answer, told in ((HIT, "The base supplied the truth: look at the model"), (MISS, "The base did not supply the truth")):
        evaluation = desk.evaluation({"a": HIT, "b": answer})
        document, change = verdict_document(evaluation), PullRequest(evaluation, evaluation, None, "main")
        assert told in render_markdown(evaluation, document).split("|")[0]
        assert told in render_comment(change, document).split("|")[0]


def test_a_green_report_has_no_changes(desk: Desk) -> None:
    desk.case("a")
    desk.accept({"a": HIT})
    report = render(desk, {"a": HIT})
    assert report.startswith("# PASS: no question lost its answer. If ")
    assert "Newly failing" not in report


def test_hostile_texts_are_harmless(desk: Desk) -> None:
    desk.cards.append({"id": HOSTILE, "text": "x"})
    desk.case("ok")
    desk.case(f"case {HOSTILE}", gold=HOSTILE, query=HOSTILE * 3)
    desk.accept({"ok": HIT, f"case {HOSTILE}": [HOSTILE, *HIT]})
    report = render(desk, {"ok": HIT, f"case {HOSTILE}": HIT})
    html = MarkdownIt("commonmark").enable("table").render(report)
    assert "<script" not in html
    assert "<img" not in html
    assert "<a " not in html
    assert "@everyone" not in html
    row = next(line for line in html.split("<tr>") if "alert(1)" in line and "not found" in line)
    assert row.count("<td>") + row.count("<td ") == 5


@given(st.text(st.characters(codec=None), max_size=80))
def test_any_text_stays_text_in_a_table_cell(text: str) -> None:
    html = MarkdownIt("commonmark").enable("table").render(f"| a | b |\n|---|---|\n| x{safe_text(text)} | end |\n")
    assert html.count("<td>") == 2
    for tag in ("<a ", "<img", "<script", "<em>", "<strong>", "<code>", "<h1>", "<del>"):
        assert tag not in html


@pytest.mark.parametrize(("text", "shown"), [("a\nb\tc", "a b c"), ("x" * 300, "x" * 199 + "…"), ("\x00\u202eabc", "abc")])
def test_a_cell_is_one_short_line(text: str, shown: str) -> None:
    assert safe_text(text) == shown


@pytest.mark.parametrize(("more", "level"), [("", "advisory"), ('calibrated = {run = "r", date = 2026-05-01}', "critical")])
def test_what_acceptance_demands_stands_beside_its_figures(more: str, level: str, desk: Desk) -> None:
    desk.settings += f"[acceptance]\nnoise = 0.7\n{more}\n"
    desk.gates += "quality = {floor = 0.5}\n"
    desk.case("a")
    report = render(desk, {"a": HIT})
    for figure, told in (
        ("quality", "≥ 0.95 (critical), ≥ 0.5 (critical)"), ("failing", "≤ 0.05 (critical)"), ("noisy", f"≤ 0.05 ({level})")
    ):  # fmt: skip
        (row,) = (line for line in report.split("\n") if line.startswith(f"| {figure}@3 |"))
        assert f"| {told} |" in row


def test_a_gated_figure_without_a_cut_off_shows_its_limit(desk: Desk) -> None:
    desk.gates = "contract = {tolerance = 0.02}\nlatency_p50 = {ceiling = 50}\ngold_excluded = {ceiling = 0.1}"
    desk.case("a")
    desk.accept({"a": filler("c0")})
    evaluation = desk.evaluation({"a": filler("c0")})
    lines = render_markdown(evaluation, verdict_document(evaluation)).splitlines()
    assert any(line.startswith("| latency_p50 |") and "≤ 50 (critical)" in line for line in lines)
    assert any(line.startswith("| gold_excluded |") and "≤ 0.1 (critical)" in line for line in lines)


@pytest.mark.parametrize(("by", "value", "other"), [("attack", "negation", "distractor"), ("intent", "dosage", "side effects")])
def test_attack_and_intent_are_told_apart_and_may_be_limited(by: str, value: str, other: str, desk: Desk) -> None:
    """Each label has rows of its own in the report, and a `[[slice]]` by it speaks where the whole would not."""
    for n in range(40):
        desk.case(f"q{n:02d}", **{by: value if n < 4 else other})
    desk.case("plain")
    rankings = dict.fromkeys(("plain", *(f"q{n:02d}" for n in range(40))), HIT)
    desk.settings += f'[[slice]]\nby = "{by}"\nmetric = "contract"\ntolerance = 0.1\nmin_n = 2\nlevel = "critical"\n'
    desk.gates = "contract = {tolerance = 0.5}\nnewly_failing = {ceiling = 1}"
    desk.accept(rankings)
    evaluation = desk.evaluation({**rankings, "q00": MISS})
    reasons = [(reason.check, reason.level, reason.sentence) for reason in evaluation.verdict.reasons]
    (told,) = [(level, sentence) for check, level, sentence in reasons if check == "slices"]
    assert told[0] == "critical"
    assert told[1].startswith(f"{by}={value}: contract@3 fell by 0.250 (1.000 to 0.750")
    assert evaluation.exit_code == 1
    sections = render_markdown(evaluation, verdict_document(evaluation)).split("\n## ")
    (section,) = [part for part in sections if part.startswith(f"By {by}\n")]
    rows = [line for line in section.splitlines() if "| contract@3 |" in line]
    assert rows == [
        f"| {name} | contract@3 | 1.000 | {now} | {n}{'' if n.endswith('36') else ' (indicative, not tested)'} |"
        for name, now, n in sorted(
            [(value, "0.750 | -0.250", "4"), (other, "1.000 | +0.000", "36"), ("not said", "1.000 | +0.000", "1")]
        )
    ]
    assert f"| {by}={value} | contract@3 | 1.000 | 0.750 | -0.250 | 4 |" in "\n".join(sections)


def test_a_label_that_no_case_bears_has_no_table(desk: Desk) -> None:
    desk.case("a")
    desk.case("b", attack="negation")
    desk.accept({"a": HIT, "b": HIT})
    report = render(desk, {"a": HIT, "b": HIT})
    assert "## By attack" in report
    assert "## By intent" not in report


def test_a_diagnosis_that_could_not_be_made_says_so(desk: Desk) -> None:
    desk.case("a")
    evaluation = dataclasses.replace(desk.evaluation({"a": MISS}), diagnosis=Diagnosis(trouble="a | broke"))
    text = render_markdown(evaluation, verdict_document(evaluation))
    assert "Could not be looked into: a \\| broke. The verdict stands without it." in text
