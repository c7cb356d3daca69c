"""The story of one case as lines: the same, whoever shows it."""

from __future__ import annotations

from kbgate.tasks.diagnosis.explanation import Above, Explanation, Lost, TopCard, lines_of
from kbgate.tasks.findings import Finding


def test_an_explanation_as_a_person_reads_it() -> None:
    evidence = {"rank now": None, "rank at the baseline": 1, "score": 0.25}
    finding = Finding("q1", "c1", "displaced", "displaced by c9", True, ("c9",), evidence, (("c9", "Nine"),))
    unknown = Finding("q1", "c2", "unknown", "no single change brings 'c2' back", False)
    explanation = Explanation(
        case="q1",
        query="What?",
        about="golden, en, canary",
        ranks_from="those of the last run",
        top_k=2,
        top=(TopCard(1, "c9", "Nine", ("new",)), TopCard(2, "c3", "Three", ())),
        golds=(
            "found: c3",
            Lost(finding, "One", (Above("c9", "Nine", "new"),)),
            Lost(unknown, "not in the knowledge base", ()),
        ),
    )
    assert list(lines_of(explanation)) == [
        "q1: What?",
        "  golden, en, canary; ranks are those of the last run",
        "top 2:",
        "    1 c9 (new): Nine",
        "    2 c3: Three",
        "found: c3",
        "missing: c1: One",
        "  displaced (proven): displaced by c9",
        "  rank now                     not found",
        "  rank at the baseline         1",
        "  score                        0.25",
        "  above it, new: c9: Nine",
        "missing: c2: not in the knowledge base",
        "  unknown: no single change brings 'c2' back",
    ]
