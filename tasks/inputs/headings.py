"""The heading of a document, as Markdown has it: not every line that begins with # is one."""

from __future__ import annotations

import re

_FENCE = re.compile(r" {0,3}(?P<fence>`{3,}|~{3,})(?P<rest>.*)")
_HEADING = re.compile(r" {0,3}#{1,6}(?=[ \t]|$)")
_UNDERLINE = re.compile(r" {0,3}=+[ \t]*")


def first_heading(text: str) -> str:
    """The words of a text's first heading, outside of blocks of code; "" where it has none."""
    fence = before = ""
    for line in text.split("\n"):
        mark = _FENCE.fullmatch(line)
        if fence:
            if mark and mark["fence"].startswith(fence) and not mark["rest"].strip():
                fence = ""
        elif mark:
            fence, before = mark["fence"], ""
        elif words := _words(line):
            return words
        elif before and _UNDERLINE.fullmatch(line):
            return before
        else:
            before = line.strip()
    return ""


def _words(line: str) -> str:
    """What a line says that is a heading, without the # that may close it."""
    # By hand: a pattern of the closing # looks at a line of many spaces once for each of them.
    heading = _HEADING.match(line)
    words = line[heading.end() :].strip() if heading else ""
    open_end = words.rstrip("#")
    closed = open_end != words and (not open_end or open_end[-1] in " \t")
    return open_end.rstrip() if closed else words
