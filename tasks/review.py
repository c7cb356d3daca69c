"""Two baselines side by side, as the person who reviews a change of one reads them."""

from __future__ import annotations

import dataclasses
import subprocess
import tempfile
from pathlib import Path

from tasks.baseline import FILES, read_baseline
from tasks.comparison import compare
from tasks.domain import Baseline, Evaluation, Verdict
from tasks.errors import InputError, Problem
from tasks.gate import judge
from tasks.registry import METRICS
from tasks.scoring import score
from tasks.settings import Suite
from tasks.suite import FILE, load_suite


def baseline_at(suite: Suite, ref: str) -> Baseline | None:
    """The baseline as it stands in a commit, None where that commit has none."""
    with tempfile.TemporaryDirectory(prefix="kbgate-") as folder:
        for name in FILES:
            shown = _git(suite.folder, ref, name)
            if shown is not None:
                (Path(folder) / name).write_bytes(shown)
        return read_baseline(suite.model_copy(update={"folder": Path(folder)}))


_POLICY = ("gates", "slices", "allowances", "acceptance", "pass_mark", "top_k", "k_values", "unit", "fast", "baseline")
"""The settings that say what counts as red; a pull request is judged by the target branch's."""


def suite_at(own: Suite, ref: str) -> Suite:
    """The suite as checked out, with the policy it has in a commit; its own where that commit does not know it."""
    shown = _git(own.folder, ref, FILE)
    if shown is None:
        return own
    with tempfile.TemporaryDirectory(prefix="kbgate-") as folder:
        (Path(folder) / FILE).write_bytes(shown)
        theirs = load_suite(Path(folder))
    return own.model_copy(update={name: getattr(theirs, name) for name in _POLICY})


def edits_policy(own: Suite, judged_by: Suite, theirs: Baseline | None) -> bool:
    """Whether a change edits its own gates or baseline; `theirs`: the baseline it is judged by."""
    mine = read_baseline(own)
    same = (mine.fingerprint if mine else "") == (theirs.fingerprint if theirs else "")
    return not same or any(getattr(own, name) != getattr(judged_by, name) for name in _POLICY)


def rejudge(own: Suite, evaluation: Evaluation) -> Verdict:
    """The verdict the same rankings get from a change's own baseline and gates."""
    exam, baseline = evaluation.exam, read_baseline(own)
    scores = score(own, exam.kb, exam.asked, exam.run)
    comparison = compare(own, exam.golden, exam.asked, exam.run, scores, baseline, exam.touched)
    return judge(dataclasses.replace(exam, suite=own, baseline=baseline, scores=scores, comparison=comparison))


def _git(folder: Path, ref: str, name: str) -> bytes | None:
    """A file of a suite's folder as it stands in a commit, None where that commit has none; `InputError` for no commit."""

    def git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True)

    # Asked first: `git show :file` reads what is staged, so an empty name would compare a change with itself.
    known = git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    if not ref or known.returncode != 0:
        raise InputError([Problem("--ref", 0, f"'{ref}' names no commit here; fetch the target branch first")])
    shown = git("show", f"{known.stdout.decode().strip()}:./{name}")
    return shown.stdout if shown.returncode == 0 else None


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
