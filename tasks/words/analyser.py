"""What finds the words of a suite's texts: ours, or a function that [index] analyser names."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from kbgate.tasks import words
from kbgate.tasks.errors import InputError, Problem, Unmeasured
from kbgate.tasks.records import digest
from kbgate.tasks.settings import FILE, Suite
from kbgate.tasks.tables import Rows

_DIGEST = 16


@dataclass(frozen=True, slots=True)
class Analyser:
    """Finds words, and says by which versions of what."""

    terms: Callable[[str, str], list[str]]
    """The words of a text and its language, in order."""
    versions: Callable[[Rows], dict[str, str]]
    """Part of the index fingerprint: whatever else the words of these rows hang on, beyond `words.VERSION`."""
    brought: str = ""
    """The name in [index] analyser; "" for ours."""

    def of_rows(self, rows: Rows) -> list[list[str]]:
        """The words of each row. Raises `Unmeasured` where one that was brought finds none, or others the second time."""
        found = [self.terms(text, language) for text, language in zip(rows.texts, rows.languages, strict=True)]
        if self.brought and found:
            if not any(found):
                raise Unmeasured(f"index.analyser: '{self.brought}' found no word in any of {len(found)} rows")
            longest = max(range(len(found)), key=lambda place: len(found[place]))
            if self.terms(rows.texts[longest], rows.languages[longest]) != found[longest]:
                raise Unmeasured(f"index.analyser: '{self.brought}' finds other words when it reads the same text again")
        return found


OURS = Analyser(words.terms, words.versions_of)


def analyser_of(suite: Suite) -> Analyser:
    """What finds the words of a suite's texts. Raises `InputError` where [index] analyser names no function."""
    return _brought(suite.index.analyser) if suite.index.analyser else OURS


@cache
def _brought(name: str) -> Analyser:
    module, _, attribute = name.partition(":")
    try:
        function = getattr(importlib.import_module(module), attribute)
    except (Exception, SystemExit) as error:  # whatever somebody's module does when it is imported
        raise InputError([_mistake(name, f"cannot be imported ({type(error).__name__}: {error})")]) from error
    if not callable(function):
        raise InputError([_mistake(name, f"is of type {type(function).__name__}")])

    def terms(text: str, language: str) -> list[str]:
        try:
            found = function(text, language)
        except Exception as error:
            raise Unmeasured(f"index.analyser: '{name}' raised {type(error).__name__}: {error}") from error
        if not isinstance(found, list | tuple):
            raise Unmeasured(f"index.analyser: '{name}' returned {type(found).__name__}, and a list of words was wanted")
        odd = [word for word in found if not isinstance(word, str) or not word or "\n" in word or "\0" in word]
        if odd:
            raise Unmeasured(f"index.analyser: '{name}' returned {odd[0]!r:.60}, which is not a word")
        return list(found)

    stated = _version(module)
    return Analyser(terms, lambda _: {"words": f"{name} {stated}"}, name)


def _version(module: str) -> str:
    """The version of a module as it says it, or its package does, and a hash of its file."""
    top = module.partition(".")[0]
    stated = str(getattr(sys.modules[module], "__version__", getattr(sys.modules[top], "__version__", "")))
    with suppress(PackageNotFoundError):
        stated = stated or version(top)
    file = getattr(sys.modules[module], "__file__", None)
    return f"{stated} {digest(Path(file).read_bytes().hex(), _DIGEST) if file else ''}".strip()


def _mistake(name: str, found: str) -> Problem:
    wanted = "a function of an installed module, as module:function, that takes a text and its language and returns its words"
    return Problem(FILE, 0, f"index.analyser: '{name}' {found}; it is {wanted}")
