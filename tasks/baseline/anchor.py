"""The anchor: the last baseline accepted with --anchor, or the first. Ten small falls must not become a big one unseen."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from kbgate.tasks.conclusions import Evaluation, Exam
from kbgate.tasks.errors import Refused, Unmeasured
from kbgate.tasks.git import run_git
from kbgate.tasks.metrics import figure_of, part_of
from kbgate.tasks.results import Placement
from kbgate.tasks.schema import Anchor, AnchoredCase, Means
from kbgate.tasks.settings import Suite
from kbgate.tasks.tables import EPSILON


def refuse_creep(evaluation: Evaluation, anchor: bool, accept_regression: bool) -> None:
    """Raise `Refused` where small falls add up: beyond twice a tolerance since the last baseline accepted with --anchor.

    `anchor`, `accept_regression`: what the person who accepts says. A figure the anchor does not hold (its gate is newer,
    or k is another) needs a new anchor: what cannot be added up must not be taken for no fall.
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
                raise Refused(f"the anchor holds no {name} to add up falls from; make this run the anchor, knowingly: --anchor")
            continue
        drop = -since if part_of(figure).higher_is_better else since
        if drop > 2 * gate.tolerance + EPSILON:
            raise Refused(
                f"{name} is {drop:.3f} worse than the anchor, twice its tolerance of {gate.tolerance:g} is allowed: small "
                "falls add up; to begin anew from here, knowingly: --anchor --accept-regression"
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


def anchor_of(exam: Exam, placement: Placement, scores: Mapping[str, float], anchored: bool) -> AnchoredCase | None:
    """What a case was at the anchor, in the figures that have a tolerance; None where it was not the same case then.

    `scores`: of this run, by figure; `anchored`: whether this run is the anchor.
    """
    if anchored:
        gated = [str(figure_of(name, exam.suite)) for name, gate in exam.suite.gates.items() if gate.tolerance is not None]
        return AnchoredCase(hash=placement.hash, scores={name: scores[name] for name in gated if name in scores})
    row = exam.baseline.cases.get(placement.case) if exam.baseline else None
    return row.anchor if row and row.hash == placement.hash else None
