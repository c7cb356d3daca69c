"""`kbgate metrics | checks | causes`: a part that is registered is listed, with what it says of itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import pytest

from kbgate.tasks.conclusions import Exam, Reason
from kbgate.tasks.diagnosis.causes import in_order
from kbgate.tasks.gate import CHECKS, check
from kbgate.tasks.metrics import AGGREGATES, METRICS, Part, better
from tests.conftest import cells_of

CLI = Callable[..., int]


def metrics() -> dict[str, list[str]]:
    parts: dict[str, Part] = {**METRICS, **AGGREGATES}
    return {
        f"{name}@k" if part.at_k else name: [
            better(part),
            f"{part.low:g} to {part.high:g}",
            part.unit,
            str(part.version),
            part.summary,
            part.source,
        ]
        for name, part in parts.items()
    }


def checks() -> dict[str, list[str]]:
    return {name: [str(part.level), "yes" if part.excusable else "no", part.summary] for name, part in CHECKS.items()}


def causes() -> dict[str, list[str]]:
    return {part.name: [", ".join(part.changed) or "-", part.summary] for part in in_order()}


@pytest.mark.parametrize(("command", "parts"), [("metrics", metrics), ("checks", checks), ("causes", causes)])
def test_a_list_has_a_row_for_every_part(
    command: str, parts: Callable[[], Mapping[str, Sequence[str]]], kbgate: CLI, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kbgate(command) == 0
    head, *rows = cells_of(capsys.readouterr().out)
    assert head[0] == command.removesuffix("s")
    assert {name: cells for name, *cells in rows} == parts()
    assert len(rows) == len(parts())


def test_causes_are_listed_in_the_order_in_which_they_are_looked_for(kbgate: CLI, capsys: pytest.CaptureFixture[str]) -> None:
    assert kbgate("causes") == 0
    assert [name for name, *_ in cells_of(capsys.readouterr().out)[1:]] == [part.name for part in in_order()]


def test_a_part_is_listed_the_moment_it_is_declared(kbgate: CLI, capsys: pytest.CaptureFixture[str]) -> None:
    assert "wording" not in CHECKS

    @check("wording", level="advisory", excusable=True)
    def wording(exam: Exam) -> Iterator[Reason]:
        """Every [[question]] is a [sentence]: nothing here is read as markup."""
        yield from ()

    try:
        assert kbgate("checks") == 0
    finally:
        CHECKS.remove("wording")
    sentence = "Every [[question]] is a [sentence]: nothing here is read as markup."
    assert ["wording", "advisory", "yes", sentence] in cells_of(capsys.readouterr().out)


def test_lists_need_no_suite_and_no_prefect(kbgate: CLI, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")
    assert [kbgate(command) for command in ("metrics", "checks", "causes")] == [0, 0, 0]
