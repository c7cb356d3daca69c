"""An analysis is kept whole, under the name it is looked for."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from kbgate.tasks.diagnosis import lexicon as module
from kbgate.tasks.diagnosis.lexicon import analyse
from kbgate.tasks.tables import Rows
from kbgate.tasks.words.analyser import OURS


def test_a_kept_analysis_is_read_back_and_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ("cats sleep", "dogs bark, cats do not")
    rows = Rows(("a", "b"), texts, ("en", "en"), ({}, {}), (("a::00",), ("b::00",)), (("a",), ("b",)))
    monkeypatch.setattr(module, "_KEPT_ABOVE", 1)
    made = analyse(rows, OURS, tmp_path)
    assert [path.suffix for path in (tmp_path / "terms").iterdir()] == [".npz"]
    kept = analyse(rows, dataclasses.replace(OURS, terms=lambda *_: 1 / 0), tmp_path)
    assert made.counts("cat").tolist() == kept.counts("cat").tolist() == [1.0, 1.0]
    assert kept.lengths.tolist() == made.lengths.tolist()
