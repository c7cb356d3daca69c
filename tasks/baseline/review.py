"""Two baselines side by side, as the person who reviews a change of one reads them."""

from __future__ import annotations

import dataclasses
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

from pydantic import JsonValue

from kbgate.tasks.baseline.files import FILES, read_baseline
from kbgate.tasks.baseline.rows import CardRows, CaseRows
from kbgate.tasks.comparison.compare import exam_of
from kbgate.tasks.conclusions import Evaluation, Verdict
from kbgate.tasks.domain import Baseline, GoldenSet, Inputs
from kbgate.tasks.errors import InputError, Problem, Unmeasured
from kbgate.tasks.gate.verdict import judge
from kbgate.tasks.git import is_shallow, run_git, trouble_of
from kbgate.tasks.inputs.suite import load_suite
from kbgate.tasks.metrics import METRICS, figure_at
from kbgate.tasks.schema import Means
from kbgate.tasks.settings import FILE, Suite


def baseline_at(suite: Suite, ref: str) -> Baseline | None:
    """The baseline as it stands in a commit, None where that commit has none."""
    with tempfile.TemporaryDirectory(prefix="kbgate-") as folder:
        for name in FILES:
            shown = _git(suite.folder, ref, name)
            if shown is not None:
                (Path(folder) / name).write_bytes(shown)
        return read_baseline(suite.model_copy(update={"folder": Path(folder)}))


_FROM_THE_CHANGE = ("folder", "given", "floors", "kb", "chunking", "embedding", "index", "retrieval")
"""What a pull request is there to change. Everything else says what counts as red, and is the target branch's."""


def suite_at(suite: Suite, ref: str) -> Suite:
    """The suite as checked out, judged as a commit has it: its policy, its date, and how it treats bad cards.

    A commit without a suite.toml has the defaults: a change that brings one brings no gates of its own.
    """
    _refuse_itself(suite.folder, ref)
    theirs = target_suite(suite, ref)
    kept = {name: getattr(suite, name) for name in _FROM_THE_CHANGE}
    bad_cards = {name: getattr(theirs.kb, name) for name in ("on_bad_card", "rejected_share")}
    return theirs.model_copy(update={**kept, "kb": suite.kb.model_copy(update=bad_cards)})


def target_suite(suite: Suite, ref: str) -> Suite:
    """The suite's settings as a commit has them."""
    shown = _git(suite.folder, ref, FILE)
    if shown is None:
        return Suite(folder=suite.folder, name=suite.name)
    with tempfile.TemporaryDirectory(prefix="kbgate-") as folder:
        (Path(folder) / FILE).write_bytes(shown)
        return load_suite(Path(folder))


def edits_policy(suite: Suite, ref: str, theirs: Baseline | None) -> bool:
    """Whether a change edits what it is judged by, or where its cards are; `theirs`: the baseline it is judged by."""
    mine = read_baseline(suite)
    same = (mine.fingerprint if mine else "") == (theirs.fingerprint if theirs else "")
    judged_by = suite_at(suite, ref)
    shown = _git(suite.folder, ref, FILE)
    if shown is None:
        # A commit without settings has the defaults, so a change that brings any edits them.
        return not same or (suite.folder / FILE).exists()
    paths = Suite.model_validate({**_table(shown), "folder": suite.folder}).kb
    fields = [name for name in Suite.model_fields if name not in _FROM_THE_CHANGE]
    return not same or suite.kb != paths or any(getattr(suite, name) != getattr(judged_by, name) for name in fields)


def _table(toml: bytes) -> dict[str, JsonValue]:
    return tomllib.loads(toml.decode("utf-8-sig"))


def rejudge(suite: Suite, evaluation: Evaluation) -> Verdict:
    """The verdict the same rankings get from a change's own baseline and gates."""
    exam = evaluation.exam
    inputs = Inputs(suite, exam.kb, GoldenSet(exam.golden), read_baseline(suite), exam.vanished, exam.announced)
    anew = exam_of(
        inputs,
        exam.asked,
        exam.run,
        exam.clock,
        touched=exam.touched,
        previous=exam.previous,
        causes=evaluation.diagnosis.causes,
    )
    return judge(dataclasses.replace(anew, provenance=exam.provenance))


def commit_of(folder: Path, ref: str) -> str:
    """The one commit a name stands for; `InputError` for none, and for a name that could be two."""
    known = run_git(folder, "rev-parse", "--verify", "--end-of-options", f"{ref}^{{commit}}")
    # An empty name would read what is staged: a change compared with itself.
    if b"dubious ownership" in known.stderr:
        raise InputError([Problem(str(folder), 0, trouble_of(known))])
    if not ref or known.returncode != 0:
        fetch = "fetch the target branch first"
        if is_shallow(folder):
            fetch = "this clone is shallow: git fetch --unshallow origin, and fetch the target branch"
        raise InputError([Problem("--ref", 0, f"'{ref}' names no commit here; {fetch}")])
    if b"ambiguous" in known.stderr:
        raise InputError([Problem("--ref", 0, f"'{ref}' is ambiguous here; write refs/remotes/... or a commit's hash")])
    return known.stdout.decode().strip()


def _refuse_itself(folder: Path, ref: str) -> None:
    """A change that is compared with itself passes whatever it does."""
    clean = not run_git(folder, "status", "--porcelain", "--", ".").stdout.strip()
    if clean and commit_of(folder, ref) == commit_of(folder, "HEAD"):
        sentence = f"'{ref}' is the commit that is checked out; a change cannot be compared with itself"
        raise InputError([Problem("--baseline-ref", 0, sentence)])


def _git(folder: Path, ref: str, name: str) -> bytes | None:
    """A file of a suite's folder as it stands in a commit; None only where that commit is known to have none."""
    commit = commit_of(folder, ref)
    listed = run_git(folder, "ls-tree", "--name-only", commit, "--", name)
    if listed.returncode == 0 and not listed.stdout.strip():
        return None
    shown = run_git(folder, "show", f"{commit}:./{name}")
    if listed.returncode != 0 or shown.returncode != 0:
        trouble = (listed.stderr + shown.stderr).decode(errors="replace").strip().split("\n")[-1]
        raise Unmeasured(f"{name} of {ref} cannot be read from git ({trouble}); fetch it, a partial clone does not do")
    return shown.stdout


def diff_baselines(old: Baseline | None, new: Baseline | None, suite: Suite) -> list[str]:
    """What changed between two baselines, a sentence a line, empty where nothing did: what a reviewer asks first."""
    if old is None or new is None:
        if new is None:
            return [] if old is None else ["the baseline is gone"]
        return [f"a first baseline: {len(new.cases)} cases, {len(new.cards)} cards; {new.summary.accepted.reason}"]
    if old.fingerprint == new.fingerprint:
        return []
    contract = str(figure_at(METRICS["contract"], suite.top_k))
    return [
        f"reason: {new.summary.accepted.reason}",
        *_moved_means(old.summary.means, new.summary.means),
        *_changed_cases(old.cases, new.cases, contract),
        *_changed_rows("card", old.cards, new.cards),
    ]


def _moved_means(old: Means, new: Means) -> Iterator[str]:
    for figure in sorted({*old, *new}):
        was, now = (f"{m.mean:.4f} (n = {m.n})" if m else "none" for m in (old.get(figure), new.get(figure)))
        if old.get(figure) != new.get(figure):
            yield f"{figure}: {was} -> {now}"


def _changed_cases(old: CaseRows, new: CaseRows, figure: str) -> Iterator[str]:
    for name in sorted({*old, *new}):
        yield from _changed_rows("case", *({name: rows[name]} if name in rows else {} for rows in (old, new)))
        if name in old and name in new:
            before, after = old[name].scores.get(figure), new[name].scores.get(figure)
            if before != after:
                yield f"case {name}: {figure} {before} -> {after}"
            mark = new[name].accepted
            if mark is not None and mark != old[name].accepted:
                yield f"case {name}: accepted by itself, by {mark.by} on {mark.on}, from run {mark.run}: {mark.reason}"
            if new[name].slipped and not old[name].slipped:
                yield f"case {name}: slipped, and counts as slipped until it passes"


def _changed_rows(noun: str, old: CaseRows | CardRows, new: CaseRows | CardRows) -> Iterator[str]:
    for name in sorted({*old, *new}):
        if name not in old or name not in new:
            yield f"{noun} {name}: {'removed' if name in old else 'added'}"
        elif old[name].hash != new[name].hash:
            yield f"{noun} {name}: edited"
