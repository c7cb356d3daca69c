"""git, asked the same way everywhere: in its own words, never waiting for a password, never for ever."""

from __future__ import annotations

import getpass
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from kbgate.tasks.errors import Unmeasured
from kbgate.tasks.secret import environment

_TIMEOUT_S = 60.0
# Its sentences are read, so they must be English; a partial clone that asks for a password would wait for nobody.
_SETTINGS = {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}
_ANOTHER_REPOSITORY = {
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_DIR", "GIT_INDEX_FILE", "GIT_NAMESPACE", "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX", "GIT_SHALLOW_FILE", "GIT_WORK_TREE",
}  # fmt: skip
"""Variables that a git hook is given: by them git would speak of the hook's repository, whatever folder it is asked in."""


def run_git(
    folder: Path, *arguments: str, stdin: bytes = b"", variables: Mapping[str, str] = MappingProxyType({})
) -> subprocess.CompletedProcess[bytes]:
    """What git says in a folder, whatever its exit code; `Unmeasured` where it cannot be run or does not end."""
    # Without our key: a repository's own settings name programs that git starts.
    here = {name: value for name, value in environment().items() if name not in _ANOTHER_REPOSITORY}
    command, given = ["git", "-C", str(folder), *arguments], {**here, **_SETTINGS, **variables}
    try:
        return subprocess.run(command, input=stdin, capture_output=True, env=given, timeout=_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        sentence = f"did not end within {_TIMEOUT_S:g} s; run it there by hand to see what it waits for"
        raise Unmeasured(f"{folder}: git {arguments[0]} {sentence}") from None
    except OSError as error:
        sentence = f"git cannot be run ({error.strerror}); install git, or put it on the PATH"
        raise Unmeasured(f"{folder}: {sentence}") from None


def answer_of(asked: subprocess.CompletedProcess[bytes], folder: Path) -> bytes:
    """What git answered in a folder; raises `Unmeasured` where it did not do what it was asked."""
    if asked.returncode != 0:
        raise Unmeasured(f"{folder}: {trouble_of(asked)}")
    return asked.stdout


def author(folder: Path) -> str:
    """Who git would say made a commit here, as `Name <address>`; whoever is logged in where git does not say."""
    try:
        known = run_git(folder, "var", "GIT_AUTHOR_IDENT")
        if known.returncode == 0:
            return known.stdout.decode(errors="replace").rsplit(" ", 2)[0].strip()
    except Unmeasured:
        pass
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user that has no name
        return "unknown"


def trouble_of(answer: subprocess.CompletedProcess[bytes]) -> str:
    """Why git did not do what it was asked, and what to do about it, as half a sentence."""
    told = answer.stderr.decode(errors="replace").strip()
    if "dubious ownership" in told:
        owned = re.search(r"repository at '(.*)'", told)
        place = owned[1] if owned else "<folder>"
        sentence = (
            "belongs to another user, and git reads no such repository (dubious ownership); as its owner nothing is to do"
        )
        return f"{sentence}, otherwise: git config --global --add safe.directory {place}"
    if "not a git repository" in told:
        return "is in no git repository; change to the checkout of the change first"
    return f"git says: {told.splitlines()[-1] if told else f'exit {answer.returncode}'}"


def version(folder: Path) -> tuple[int, int] | None:
    """Git's version, its first two numbers; None where it does not say."""
    told = re.search(rb"(\d+)\.(\d+)", run_git(folder, "version").stdout)
    return (int(told[1]), int(told[2])) if told else None


def is_shallow(folder: Path) -> bool:
    """Whether a clone holds a part of its history only."""
    return run_git(folder, "rev-parse", "--is-shallow-repository").stdout.strip() == b"true"
