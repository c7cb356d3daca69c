"""The one door of what is printed: no control character, no line end inside a field, no command that a CI runner would obey.

Texts of cards, questions, ids and file names are hostile, and so is what a library says of them. Our own sentences pass
`printable`, wherever they are told; all else that a command prints for a log, a file or a pipe passes `Lines`.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any, TextIO, cast

_LINE_ENDS = "\t\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029"
_HOSTILE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""C0, C1, what ends a line or turns its direction, halves of a character."""
_COMMANDS = ((re.compile(r"\A(\s*):(?=:)"), r"\1: "), (re.compile(r"##(?=\[|vso\[|teamcity\[)"), "# #"))
"""How runners are told what to do: GitHub at the beginning of a line, its older form and Azure's anywhere in it."""
_CREDENTIALS = re.compile(r"(?<=://)[^\s/@]+@")
_WAITS = re.compile(r"\s*:?")
"""A beginning of a line that may become a command."""


def printable(text: object) -> str:
    """A text as one line that may stand in any log; credentials of URLs are blotted out."""
    line = _HOSTILE.sub(lambda found: " " if found[0] in _LINE_ENDS else "\ufffd", str(text))
    for command, broken in _COMMANDS:
        line = command.sub(broken, line)
    return _CREDENTIALS.sub("***@", line)


def printable_json(text: str) -> str:
    """JSON that means the same and can be printed: what `printable` would take out of its strings is escaped there."""
    escaped = _HOSTILE.sub(lambda found: found[0] if found[0] == "\n" else f"\\u{ord(found[0]):04x}", text)
    return _COMMANDS[1][0].sub(r"#\\u0023", escaped)


class Lines:
    """A stream that lets lines through, each printable."""

    def __init__(self, stream: TextIO):
        self.stream, self._begun = stream, ""

    def write(self, text: str) -> int:
        """Let through what became a whole line."""
        *whole, self._begun = (self._begun + text).split("\n")
        if whole:
            self.stream.write("".join(f"{printable(line)}\n" for line in whole))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write one after the other."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Let through what was begun, unless a command could become of it."""
        if not _WAITS.fullmatch(self._begun):
            begun, self._begun = self._begun, ""
            self.stream.write(printable(begun))
        self.stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextlib.contextmanager
def harmless_output() -> Iterator[None]:
    """Until the end of the block everything that is printed, by a library too, passes `Lines`.

    A terminal is left alone: its progress bars are made of control characters, and no runner reads it.
    """
    through = [stream if stream.isatty() else cast(TextIO, Lines(stream)) for stream in (sys.stdout, sys.stderr)]
    with contextlib.redirect_stdout(through[0]), contextlib.redirect_stderr(through[1]):
        try:
            yield
        finally:
            for stream in through:
                with contextlib.suppress(OSError, ValueError):  # a reader that left changes no exit code
                    stream.flush()
