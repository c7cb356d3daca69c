"""What each flow returns, whatever the moment: a name, an exit code and a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from kbgate.tasks.conclusions import Evaluation, Verdict, VerdictName


class Result(Protocol):
    """What every flow returns, and every caller needs."""

    @property
    def name(self) -> VerdictName:
        """The verdict's name."""

    @property
    def exit_code(self) -> int:
        """0 to 4."""

    @property
    def summary(self) -> str:
        """The reasons, for a person."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict that stands: the last run judged exactly what is there now."""

    run: str
    name: VerdictName
    exit_code: int

    @property
    def summary(self) -> str:
        """That nothing was examined again, and where the verdict is from."""
        return f"nothing changed since run {self.run}, which ended {self.name}"


@dataclass(frozen=True, slots=True)
class NightlyRow:
    """One suite of a night."""

    suite: str
    verdict: VerdictName
    exit_code: int
    worst: str
    """The worst change, or what went wrong."""


@dataclass(frozen=True, slots=True)
class Night:
    """A night: one row per suite."""

    rows: tuple[NightlyRow, ...]

    @property
    def name(self) -> VerdictName:
        """The gravest verdict of the night; ERROR where nothing was examined."""
        return max((row.verdict for row in self.rows), key=lambda name: name.gravity, default=VerdictName.ERROR)

    @property
    def exit_code(self) -> int:
        """The exit code of the gravest row."""
        return next((row.exit_code for row in self.rows if row.verdict == self.name), 4)

    @property
    def summary(self) -> str:
        """A line a suite."""
        return "; ".join(f"{row.suite}: {row.verdict}, {row.worst}" for row in self.rows)


@dataclass(frozen=True, slots=True, eq=False)
class PullRequest:
    """A change, judged by the target branch's baseline and gates."""

    subset: Evaluation
    """The fast subset and the touched cases."""
    deciding: Evaluation
    """The full set where no subset could decide, otherwise the subset."""
    own: Verdict | None
    """The verdict by the change's own baseline and gates, where it edits either; never decisive."""
    ref: str
    full: str = ""
    """Why the full set decided; "" where the subset did."""

    @property
    def name(self) -> VerdictName:
        """The deciding verdict; at least WARN where the change edits what it is judged by."""
        name = self.deciding.verdict.name
        return VerdictName.WARN if self.own is not None and name == VerdictName.PASS else name

    @property
    def exit_code(self) -> int:
        """The deciding verdict's."""
        return self.deciding.verdict.exit_code

    @property
    def summary(self) -> str:
        """The deciding reasons, that the change edits what it is judged by, and where a merge was examined, of what."""
        edits = f"the change edits its own baseline or gates; judged by those of {self.ref}" if self.own else ""
        pair = self.deciding.provenance.merged
        merge = f"examined: the merge of {pair.change[:10]} with {self.ref} ({pair.target[:10]})" if pair else ""
        return "; ".join(part for part in (self.deciding.summary, edits, merge) if part)


@dataclass(frozen=True, slots=True, eq=False)
class Promotion:
    """A candidate that was examined in production, and served or not."""

    evaluation: Evaluation
    promoted: bool
    served: str
    """The build that is served now; "" for none."""
    lag_s: float | None = None
    """Seconds from the newest card's `updated_at` to the moment it was served."""
    unaccepted: str = ""
    """Why it is served and did not become the baseline, although that was asked for; "" where it did or was not."""
    damage: str = ""
    """What was wrong with the build that was served before; "" for nothing."""

    @property
    def name(self) -> VerdictName:
        """The exam's verdict where it was let in, otherwise BLOCK: everything else leaves production untouched."""
        return self.evaluation.verdict.name if self.promoted else VerdictName.BLOCK

    @property
    def exit_code(self) -> int:
        """0 where the candidate is served, 1 where production is untouched."""
        return 0 if self.promoted else 1

    @property
    def summary(self) -> str:
        """What is served, and why."""
        damage = f"; of what was served: {self.damage}" if self.damage else ""
        if self.promoted:
            lag = "" if self.lag_s is None else f"; its newest card was updated {self.lag_s / 3600:.1f} hours ago"
            unaccepted = f"; the baseline stays as it is: {self.unaccepted}" if self.unaccepted else ""
            return f"{self.served} is served{lag}{unaccepted}{damage}"
        return f"production stays at {self.served or 'nothing'}; {self.evaluation.name}: {self.evaluation.summary}{damage}"
