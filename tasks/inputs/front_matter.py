"""Front matter: the fields between two rules at the beginning of a document, every value as the text it is.

YAML can say much in little: an alias of a list of aliases names a billion values in ten lines, and one can hold itself. So
values are made from the parsed nodes by a walk that stops, and nothing is built before it is known to be small.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pydantic import JsonValue

from kbgate.tasks.errors import InputError, Problem
from kbgate.tasks.records import DEEPEST, TOO_DEEP, no_key_twice

if TYPE_CHECKING:
    from yaml import Node

_FRONT_MATTER = re.compile(r"---[ \t]*\n(?P<head>.*?)^---[ \t]*(\n|\Z)", re.DOTALL | re.MULTILINE)
_LONGEST = 100_000
"""Characters of front matter."""
_MOST = 10_000
"""Values of front matter, those that aliases repeat counted each time."""


def read_front_matter(name: str, text: str) -> tuple[dict[str, JsonValue], str]:
    """The fields between two rules at the beginning of a text, and the rest of it; raises `InputError`."""
    front = _FRONT_MATTER.match(text)
    if not front:
        return {}, text
    import yaml

    try:
        if len(front["head"]) > _LONGEST:
            raise ValueError(f"it has more than {_LONGEST} characters")
        # Of the base loader, for which every scalar is the text it is: 00123, NA and 1e5 stay what they are.
        node = yaml.compose(front["head"], Loader=yaml.BaseLoader)
        fields = {} if node is None or node.value == "" else _Walk().value(node)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        sentence = f"has front matter that is not valid YAML ({getattr(error, 'problem', None) or 'unreadable'})"
        raise InputError([Problem(name, mark.line + 2 if mark else 1, sentence)]) from None
    except (ValueError, RecursionError) as error:
        wrong = TOO_DEEP if isinstance(error, RecursionError) else error
        raise InputError([Problem(name, 1, f"has front matter that cannot be taken ({wrong})")]) from None
    # Anything else between two rules is text that begins with a thematic break.
    return (fields, text[front.end() :]) if isinstance(fields, dict) else ({}, text)


class _Walk:
    """Nodes made into values, as many as there may be."""

    def __init__(self) -> None:
        self._left = _MOST

    def value(self, node: Node, depth: int = 0) -> JsonValue:
        """What a node says; raises ValueError."""
        from yaml import MappingNode, SequenceNode

        self._left -= 1
        if self._left < 0:
            raise ValueError(f"it says more than {_MOST} values, aliases written out")
        if depth > DEEPEST:
            raise ValueError(TOO_DEEP)
        if isinstance(node, MappingNode):
            return no_key_twice([(self._key(key), self.value(value, depth + 1)) for key, value in node.value])
        if isinstance(node, SequenceNode):
            return [self.value(item, depth + 1) for item in node.value]
        return str(node.value)

    def _key(self, node: Node) -> str:
        if not isinstance(node.value, str):
            raise ValueError(f"line {node.start_mark.line + 2} has a list or a table for a key")
        return node.value
