"""Characters that nobody sees: a text of them alone says nothing, and two ids that differ by them alone look like one."""

from __future__ import annotations

import re

_INVISIBLE = re.compile(
    "[\x80-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Unicode's default ignorable characters, the controls of C1 and the blank Braille pattern."""
_SHAPING = re.compile("[\u200c\u200d\ufe00-\ufe0f]")
"""Those that shape the characters beside them: Persian, Indic scripts and emoji are written with them."""


def is_blank(text: str) -> bool:
    """Whether a text has nothing in it that a reader could see."""
    return not as_seen(text).strip()


def as_seen(text: str) -> str:
    """The text without what nobody sees."""
    return _INVISIBLE.sub("", text)


def hidden_in(name: str) -> str:
    """The first character of a name that nobody sees and that shapes nothing, or ""."""
    found = _INVISIBLE.search(_SHAPING.sub("", name))
    return found[0] if found else ""


def made_visible(text: str) -> str:
    """The text with what nobody sees as code points, such as <U+200B>."""
    return _INVISIBLE.sub(lambda found: f"<U+{ord(found[0]):04X}>", text)
