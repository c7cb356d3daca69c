"""The anchor: the last baseline accepted with --anchor, or the first. Ten small drops must not become a big one unseen.

It is a set of cases: what became of them since is counted over all of them (`comparison.anchored`).
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from kbgate.tasks.comparison.wordings import anchored_cases
from kbgate.tasks.conclusions import Evaluation, Exam
from kbgate.tasks.domain import Baseline, Cases
from kbgate.tasks.errors import Refused, Unmeasured
from kbgate.tasks.git import run_git
from kbgate.tasks.metrics import figure_of, part_of
from kbgate.tasks.results import Placement
from kbgate.tasks.schema import Anchor, AnchoredCase, Means
from kbgate.tasks.settings import Suite
from kbgate.tasks.tables import EPSILON


def refuse_creep(evaluation: Evaluation, anchor: bool, accept_regression: bool) -> None:
    """Raise `Refused` where small drops add up: beyond twice a tolerance since the last baseline accepted with --anchor.

    `anchor`, `accept_regression`: what the person who accepts says. A figure the anchor does not hold (its gate is newer,
    or k is another) needs a new anchor: what cannot be added up must not be taken for no drop.
    """
    exam = evaluation.exam
    if exam.baseline is None or (anchor and accept_regression):
        return
    for name, gate in exam.suite.gates.items():
        if gate.tolerance is None or gate.level == "advisory":
            continue
        figure = figure_of(name, exam.suite)
        since = exam.comparison.figure(exam.run.method, figure).since_anchor
        if since is None:
            if not anchor:
                raise Refused(f"the anchor holds no {name} to add up drops from; make this run the anchor, knowingly: --anchor")
            continue
        drop = -since if part_of(figure).higher_is_better else since
        if drop > 2 * gate.tolerance + EPSILON:
            raise Refused(
                f"{name} is {drop:.3f} worse than the anchor, twice its tolerance of {gate.tolerance:g} is allowed: small "
                "drops add up; to begin anew from here, knowingly: --anchor --accept-regression"
            )


def refuse_second_beginning(suite: Suite, summary: str) -> None:
    """Raise `Refused` where git knows a baseline of a suite that has none now: a first one would forget all that fell since.

    `summary`: the file that every baseline has. Outside of a repository nothing is known, and a first one is a first one.
    """
    real = suite.folder.resolve()
    if not any((folder / ".git").exists() for folder in (real, *real.parents)):
        return
    known = run_git(real, "rev-list", "-1", "--all", "--", summary)
    if known.returncode != 0:
        trouble = known.stderr.decode(errors="replace").strip().split("\n")[0]
        raise Unmeasured(f"{real}: git does not say whether there was a baseline before ({trouble})")
    commit = known.stdout.decode().strip()
    if commit:
        where = shlex.quote(suite.given or str(suite.folder))
        raise Refused(
            f"git knows an earlier baseline of this suite (commit {commit[:12]}), so this is no first one: bring it back with "
            f"git (git log --all -- {where}/{summary}), or begin anew, knowingly: --anchor --accept-regression"
        )


def anchored_by(evaluation: Evaluation, reason: str, aggregates: Means) -> Anchor:
    """What baseline.json says of the anchor; `aggregates`: the run's figures that are no mean over cases."""
    return Anchor(
        on=evaluation.started.date(), reason=reason.strip(), index=evaluation.fingerprints.index, aggregates=aggregates
    )


def anchored_now(exam: Exam, placement: Placement, scores: Mapping[str, float]) -> AnchoredCase:
    """What a case is where this run is the anchor; `scores`: by figure."""
    gated = [str(figure_of(name, exam.suite)) for name, gate in exam.suite.gates.items() if gate.tolerance is not None]
    return AnchoredCase(hash=placement.hash, scores={name: scores[name] for name in gated if name in scores})


def carried_over(baseline: Baseline, golden: Cases) -> tuple[dict[str, AnchoredCase], dict[str, AnchoredCase]]:
    """The anchor's cases as the next baseline holds them, by id: those that are asked, and those that are asked no more."""
    kept: dict[str, AnchoredCase] = {}
    removed: dict[str, AnchoredCase] = {}
    for then, now, entry in anchored_cases(baseline, golden):
        if now is not None:
            as_its_row = golden[now].hash == entry.hash and entry.asked is not None
            kept[now] = entry.model_copy(update={"asked": None}) if as_its_row else entry
            continue
        name = then
        while name in removed:  # another case bore this name, and is gone too
            name += "'"
        removed[name] = entry
    return kept, removed
