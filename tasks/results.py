"""What a flow comes to: a verdict's name, an exit code and a sentence, whatever the moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from kbgate.tasks.domain import Evaluation, Verdict

GREEN = ("PASS", "WARN")
_GRAVITY = ("PASS", "WARN", "INCONCLUSIVE", "BLOCK", "ERROR")


class Result(Protocol):
    """What every flow returns, and every caller needs."""

    @property
    def name(self) -> str:
        """PASS, WARN, BLOCK, INCONCLUSIVE or ERROR."""

    @property
    def exit_code(self) -> int:
        """0 to 4."""

    @property
    def said(self) -> str:
        """The reasons, for a person."""


@dataclass(frozen=True)
class Judgement:
    """A verdict that stands: the last run judged exactly what is there now."""

    run: str
    name: str
    exit_code: int

    @property
    def said(self) -> str:
        """That nothing was examined again, and where the verdict is from."""
        return f"nothing changed since run {self.run}, which ended {self.name}"


@dataclass(frozen=True)
class NightlyRow:
    """One suite of a night."""

    suite: str
    verdict: str
    exit_code: int
    worst: str
    """The worst change, or what went wrong."""


@dataclass(frozen=True)
class Summary:
    """A night: one row per suite."""

    rows: tuple[NightlyRow, ...]

    @property
    def name(self) -> str:
        """The gravest verdict of the night; ERROR where nothing was examined."""
        names = [row.verdict for row in self.rows] or ["ERROR"]
        return max(names, key=_GRAVITY.index)

    @property
    def exit_code(self) -> int:
        """The exit code of the gravest row."""
        gravest = [row.exit_code for row in self.rows if row.verdict == self.name]
        return gravest[0] if gravest else 4

    @property
    def said(self) -> str:
        """A line a suite."""
        return "; ".join(f"{row.suite}: {row.verdict}, {row.worst}" for row in self.rows)


@dataclass(frozen=True)
class PullRequest:
    """A change, judged by the target branch's baseline and gates."""

    subset: Evaluation
    """The fast subset and the touched cases."""
    deciding: Evaluation
    """The full set where the subset was red or inconclusive, otherwise the subset."""
    own: Verdict | None
    """The verdict by the change's own baseline and gates, where it edits either; never decisive."""
    ref: str

    @property
    def name(self) -> str:
        """The deciding verdict; at least WARN where the change edits what it is judged by."""
        name = self.deciding.verdict.name
        return "WARN" if self.own is not None and name == "PASS" else name

    @property
    def exit_code(self) -> int:
        """The deciding verdict's."""
        return self.deciding.verdict.exit_code

    @property
    def said(self) -> str:
        """The deciding reasons, and that the change edits what it is judged by."""
        edits = f"the change edits its own baseline or gates; judged by those of {self.ref}" if self.own else ""
        return "; ".join(part for part in (self.deciding.said, edits) if part)


@dataclass(frozen=True)
class Promotion:
    """A candidate that was examined in production, and served or not."""

    evaluation: Evaluation
    promoted: bool
    served: str
    """The build that is served now; "" for none."""
    lag_s: float | None = None
    """Seconds from the newest card's `updated_at` to the moment it was served."""

    @property
    def name(self) -> str:
        """The exam's verdict where it was let in, otherwise BLOCK: everything else leaves production untouched."""
        return self.evaluation.verdict.name if self.promoted else "BLOCK"

    @property
    def exit_code(self) -> int:
        """0 where the candidate is served, 1 where production is untouched."""
        return 0 if self.promoted else 1

    @property
    def said(self) -> str:
        """What is served, and why."""
        if self.promoted:
            lag = "" if self.lag_s is None else f"; its newest card was updated {self.lag_s / 3600:.1f} hours ago"
            return f"{self.served} is served{lag}"
        served = self.served or "nothing"
        return f"production stays at {served}; {self.evaluation.name}: {self.evaluation.said}"
