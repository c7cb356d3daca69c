"""Files that git left unfinished: the pointer of one that Git LFS or git-annex keeps, and the markers of an unresolved merge.

Both are text, and would be read as what they stand for: a card that says where its content is, or two that contradict.
"""

from __future__ import annotations

import re
from pathlib import Path

from kbgate.tasks.errors import InputError, Problem

_POINTERS = (
    ("Git LFS", re.compile(r"version https?://\S+\n(?:\S+ .*\n)*oid sha256:[0-9a-f]{64}\n(?:\S+ .*\n?)*"), "git lfs pull"),
    ("git-annex", re.compile(r"/annex/objects/\S+\n?"), "git annex get"),
)
_LONGEST = 1024
"""Characters beyond which a file is no pointer: the specification of Git LFS says so."""
_OURS, _BETWEEN, _THEIRS = (re.compile(rf"^{line}$", re.MULTILINE) for line in ("<{7}(?: .*)?", "={7}", ">{7}(?: .*)?"))
"""The lines around the two sides of a merge."""
_SHOWN = 60


def refuse_unfinished(name: str, text: str) -> None:
    """Raise `InputError` where the text of a file is a pointer, or holds markers of a merge."""
    _refuse_pointer(name, text)
    marker = _OURS.search(text)
    if marker is None:
        # A line of = alone is a Markdown heading's, and one of > a quotation: together they are what a merge left.
        between = _BETWEEN.search(text)
        marker = _THEIRS.search(text, between.end()) if between else None
    if marker is not None:
        shown = f"'{marker[0][:_SHOWN]}'"
        sentence = f"holds a conflict marker of git ({shown}): finish the merge; where it is meant as text, indent it"
        raise InputError([Problem(name, text.count("\n", 0, marker.start()) + 1, sentence)])


def refuse_pointer(path: Path, name: str = "") -> None:
    """The same of a file that is no text, told by `name`; one that cannot be read is left to whoever reads it."""
    try:
        with path.open("rb") as file:
            head = file.read(_LONGEST + 1)
    except OSError:
        return
    _refuse_pointer(name or path.name, head.decode("utf-8", errors="replace"))


def _refuse_pointer(name: str, text: str) -> None:
    if len(text) > _LONGEST:
        return
    for keeper, pointer, command in _POINTERS:
        if pointer.fullmatch(text.replace("\r\n", "\n")):
            raise InputError([Problem(name, 0, f"is a {keeper} pointer, not the file itself; fetch it with: {command}")])
