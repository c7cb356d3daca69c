"""What can go wrong, and the exit code each kind ends with.

KbgateError                     4  could not measure
├── InputError                  2  a file or a setting is wrong: every mistake of it, at once
│   ├── UnknownPart             2  a name that no registered part has
│   ├── BaselineDamaged         2  baseline files unreadable, or disagreeing with each other
│   └── BaselineOlder           2  baseline files of an older kbgate, which can be rewritten
├── Refused                     1  a baseline update or a promotion that the rules forbid
└── Unmeasured                  4  the store, the model or the run is not what it should be
    ├── Overtaken               4  the pointer moved since it was read; nothing of this promotion is served
    └── Undecided               4  nobody can tell whether the pointer moved; what it may name is left alone
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from kbgate.tasks.characters import made_visible
from kbgate.tasks.printable import printable


@dataclass(frozen=True, order=True)
class Problem:
    """One mistake in one place, as a sentence for the person who must mend it."""

    file: str
    line: int
    """1-based; 0 where a file has no lines to speak of (TOML paths stand in the sentence)."""
    sentence: str
    found: str = ""
    """What stood there, where it may differ between lines that have the same mistake."""
    takes_more: bool = False
    """Whether it took other records along, and nobody knows how many: the rest of a file, or all of it."""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        found = f" (found {self.found})" if self.found else ""
        # Two ids that look alike are told apart here or nowhere.
        return printable(made_visible(f"{place}: {self.sentence}{found}"))


class KbgateError(Exception):
    """Something kept kbgate from measuring."""

    exit_code = 4

    def __str__(self) -> str:
        # Wherever it is told, in a log or a state too: it may name what it was given.
        return "\n".join(map(printable, super().__str__().split("\n")))


class InputError(KbgateError):
    """A file or a setting is wrong."""

    exit_code = 2

    def __init__(self, problems: Iterable[Problem]):
        self.problems = sorted(set(problems))
        super().__init__("\n".join(told_once(self.problems)))


class UnknownPart(InputError):
    """A name that no registered part has."""


class BaselineDamaged(InputError):
    """The committed baseline cannot be trusted."""


class BaselineOlder(InputError):
    """The committed baseline is of an older schema."""


class Refused(KbgateError):
    """The rules forbid what was asked."""

    exit_code = 1


class Unmeasured(KbgateError):
    """The measurement itself failed, so there is nothing to judge."""


class Overtaken(Unmeasured):
    """Another promotion moved the pointer since this one read it."""


class Undecided(Unmeasured):
    """The server did not say whether the pointer moved."""


def told_once(problems: Iterable[Problem]) -> list[str]:
    """A sentence per problem; the same mistake in several lines of a file is one sentence that counts and names them."""
    alike: dict[tuple[str, str, bool], list[Problem]] = {}
    for problem in problems:
        alike.setdefault((problem.file, problem.sentence, problem.line > 0), []).append(problem)
    sentences = []
    for first, *others in alike.values():
        lines = named(str(line) for line in dict.fromkeys(other.line for other in others))
        more = f"; the same in {counted(len(others), 'more line')}: {lines}" if others else ""
        sentences.append(f"{first}{more}")
    return sentences


_NAMED = 12
"""Known words a sentence lists before it only counts them."""
_CASES = 5
"""Cases a sentence names before it only counts them."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A half sentence naming the nearest known word, or all of them where none is near."""
    known = sorted(known)
    near = difflib.get_close_matches(word[:200], known, n=1, cutoff=0.6)
    rest = f" and {len(known) - _NAMED} more" if len(known) > _NAMED else ""
    return f"did you mean '{near[0]}'?" if near else f"known: {', '.join(known[:_NAMED]) or 'none'}{rest}"


def named(cases: Iterable[str]) -> str:
    """The first few case ids, and how many more."""
    cases = list(cases)
    rest = f" and {len(cases) - _CASES} more" if len(cases) > _CASES else ""
    return ", ".join(cases[:_CASES]) + rest


def counted(count: int, noun: str) -> str:
    """'1 case', '2 cases'."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
