"""What a diagnosis says: findings one by one, the groups they make, and the patterns across them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Finding:
    """Why one gold card of one case is not where it should be."""

    case: str
    gold: str
    cause: str
    """A registered cause, or "unknown": an honest answer that counts as no diagnosis."""
    sentence: str
    proven: bool
    """True where changing this one thing, and nothing else, brought the gold back into the top k."""
    culprits: tuple[str, ...] = ()
    """The documents or settings that did it, the first one foremost."""
    evidence: Mapping[str, float | None] = field(default_factory=dict)
    """Ranks and scores by name; None: not within the depth that was looked at."""
    above: tuple[tuple[str, str], ...] = ()
    """(id, title) of the new or changed cards that now stand above the gold, in rank order."""


@dataclass(frozen=True, slots=True)
class Group:
    """Findings of one cause and one culprit, as one line."""

    cause: str
    sentence: str
    cases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pattern:
    """What many failures have in common, and where to look first."""

    name: str
    sentence: str
    look_first: str
    n: int
    share: float
    """Of the failures, how many it explains."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """A card nobody judged that stands above a gold and says much the same."""

    case: str
    gold: str
    gold_rank: int | None
    candidate: str
    rank: int
    similarity: float
    """Cosine similarity of their nearest rows."""


@dataclass(frozen=True, slots=True)
class Causes:
    """What is proven of failing cases, and why the rest is not: all that a verdict takes from a diagnosis."""

    proven: tuple[str, ...] = ()
    """Cases of which every missing gold has a proven cause."""
    unproven: Mapping[str, str] = field(default_factory=dict)
    """What is said of the first gold without one, by case."""
    trouble: str = ""
    """What kept the diagnosis from being made."""

    def why_not(self, case: str) -> str:
        """Why a case has no proven cause, as half a sentence."""
        if self.trouble:
            return f"could not be looked into: {self.trouble}"
        return self.unproven.get(case, "was not looked into")


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why a run fell."""

    findings: tuple[Finding, ...] = ()
    groups: tuple[Group, ...] = ()
    patterns: tuple[Pattern, ...] = ()
    left_out: int = 0
    """Golds that fell and were not looked into, because there were too many."""
    doubts: tuple[Doubt, ...] = ()
    """Labels a person should look at."""
    trouble: str = ""
    """What kept the diagnosis from being made; the verdict stands without it, and no case has a proven cause."""

    @property
    def causes(self) -> Causes:
        """What a verdict may take from it."""
        unproven = {finding.case: finding.sentence for finding in reversed(self.findings) if not finding.proven}
        proven = dict.fromkeys(finding.case for finding in self.findings if finding.case not in unproven)
        return Causes(tuple(proven), unproven, self.trouble)
