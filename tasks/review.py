"""Two baselines side by side, as the person who reviews a change of one reads them."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from tasks.baseline import FILES, read_baseline
from tasks.domain import Baseline
from tasks.errors import InputError, Problem
from tasks.registry import METRICS
from tasks.settings import Suite


def baseline_at(suite: Suite, ref: str) -> Baseline | None:
    """The baseline as it stands in a commit, None where that commit has none."""
    with tempfile.TemporaryDirectory(prefix="kbgate-") as folder:
        for name in FILES:
            shown = subprocess.run(["git", "-C", str(suite.folder), "show", f"{ref}:./{name}"], capture_output=True)
            if shown.returncode == 0:
                (Path(folder) / name).write_bytes(shown.stdout)
            elif b"invalid object name" in shown.stderr or b"not a git repository" in shown.stderr:
                said = shown.stderr.decode(errors="replace").strip()
                raise InputError([Problem("--ref", 0, f"'{ref}' cannot be read from git here ({said})")])
        return read_baseline(suite.model_copy(update={"folder": Path(folder)}))


def diff_baselines(old: Baseline | None, new: Baseline | None, suite: Suite) -> list[str]:
    """What changed between two baselines, a sentence a line, empty where nothing did: what a reviewer asks first."""
    if old is None or new is None:
        if new is None:
            return [] if old is None else ["the baseline is gone"]
        return [f"a first baseline: {len(new.cases)} cases, {len(new.cards)} cards; {new.summary['accepted']['reason']}"]
    lines: list[str] = []
    if old.fingerprint == new.fingerprint:
        return lines
    lines.append(f"reason: {new.summary['accepted']['reason']}")
    key = METRICS["contract"].key(suite.top_k)
    for figure in sorted({*old.summary["means"], *new.summary["means"]}):
        was, now = (b.summary["means"].get(figure) for b in (old, new))
        if was != now:
            told = (f"{m['mean']:.4f} (n = {m['n']})" if m else "none" for m in (was, now))
            lines.append(f"{figure}: {' -> '.join(told)}")
    for noun, was_rows, now_rows in (("case", old.cases, new.cases), ("card", old.cards, new.cards)):
        for name in sorted({*was_rows, *now_rows}):
            if name not in was_rows or name not in now_rows:
                lines.append(f"{noun} {name}: {'removed' if name in was_rows else 'added'}")
            elif was_rows[name]["hash"] != now_rows[name]["hash"]:
                lines.append(f"{noun} {name}: edited")
            if noun == "case" and name in was_rows and name in now_rows:
                before, after = (rows[name]["scores"].get(key) for rows in (was_rows, now_rows))
                if before != after:
                    lines.append(f"case {name}: {key} {before} -> {after}")
    return lines
