"""Where a source can be changed, and what it is changed to: mutmut's operators and a few of our own, walked over by us."""

from __future__ import annotations

import difflib
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation.mutators import mutation_operators

_CHOICES = {"max", "min", "maximum", "minimum", "clip"}
"""Functions of which one argument may stand for the whole."""


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    file: str
    line: int
    lines: tuple[int, ...]
    """Of the statement; none outside of functions, where a change concerns every test of the file."""
    source: str
    original: str
    mutated: str
    """The lines that differ, each text on one line."""
    diff: str


@dataclass(frozen=True)
class Place:
    """A node that can be changed, and into what."""

    node: cst.CSTNode
    choices: tuple[cst.CSTNode, ...]
    line: int
    lines: tuple[int, ...]


@dataclass(frozen=True)
class Source:
    """A file with its places."""

    file: str
    module: cst.Module
    places: tuple[Place, ...]
    inside: frozenset[int]
    """Lines that stand in a function."""


def read(file: str, text: str) -> Source:
    """Every place of a file, in its order."""
    wrapper = MetadataWrapper(cst.parse_module(text))
    walk = _Walk(wrapper.resolve(PositionProvider))
    walk.into(wrapper.module, (), False, False)
    return Source(file, wrapper.module, tuple(walk.places), frozenset(walk.inside))


def change(source: Source, place: Place, draw: random.Random) -> Mutant | None:
    """One change of a place; None where it gives the same text, or no Python."""
    before = source.module.code
    after = cst.ensure_type(source.module.deep_replace(place.node, draw.choice(place.choices)), cst.Module).code
    try:
        compile(after, source.file, "exec")
    except SyntaxError:
        return None
    if after == before:
        return None
    told = list(difflib.unified_diff(before.splitlines(), after.splitlines(), source.file, source.file, n=1, lineterm=""))
    gone, come = (" ".join(line[1:].strip() for line in told[2:] if line[0] == mark) for mark in "-+")
    return Mutant(source.file, place.line, place.lines, after, gone, come, "\n".join(told[2:]))


class _Walk:
    """Down a tree, knowing at each node the statement it stands in, and whether that is in a function."""

    def __init__(self, positions: Any):
        self._positions = positions
        self.places: list[Place] = []
        self.inside: set[int] = set()

    def into(self, node: cst.CSTNode, lines: tuple[int, ...], in_function: bool, plain: bool) -> None:
        """`plain`: only numbers and truth values are changed here."""
        if isinstance(node, cst.Annotation | cst.Import | cst.ImportFrom | cst.Assert):
            return
        if isinstance(node, cst.SimpleStatementLine | cst.If | cst.While | cst.For | cst.With | cst.Return):
            lines = self._span(node)
        if in_function and isinstance(node, cst.BaseExpression):
            self.inside.update(lines)
        choices = tuple(_choices(node, plain or not in_function))
        if choices:
            self.places.append(Place(node, choices, self._positions[node].start.line, lines if in_function else ()))
        for child in node.children:
            if isinstance(node, cst.FunctionDef) and child is not node.body:
                # What stands before the body is run when the function is defined.
                self.into(child, (), False, True)
            else:
                self.into(child, lines, in_function or isinstance(node, cst.FunctionDef), plain)

    def _span(self, node: cst.CSTNode) -> tuple[int, ...]:
        """A statement's lines; of one that holds others, those before them."""
        at = self._positions[node]
        body = getattr(node, "body", None)
        end = self._positions[body].start.line - 1 if isinstance(body, cst.IndentedBlock) else at.end.line
        return tuple(range(at.start.line, max(end, at.start.line) + 1))


def _choices(node: cst.CSTNode, plain: bool) -> Iterator[cst.CSTNode]:
    if plain:
        if isinstance(node, cst.Integer | cst.Float) or (isinstance(node, cst.Name) and node.value in ("True", "False")):
            yield from _by_mutmut(node)
        return
    if isinstance(node, cst.SimpleString):
        # A sentence's wording is its author's; a name is not, and once is enough.
        yield from list(_by_mutmut(node))[:1] if " " not in node.value else ()
        return
    if isinstance(node, cst.ComparisonTarget) and _has_slack(node.comparator):
        return
    yield from _by_mutmut(node)
    yield from _by_us(node)


def _has_slack(limit: cst.BaseExpression) -> bool:
    """Whether a limit is written as `x + EPSILON`: whether exactly that is within it says nothing."""
    return (
        isinstance(limit, cst.BinaryOperation)
        and isinstance(limit.operator, cst.Add | cst.Subtract)
        and isinstance(limit.right, cst.Name)
        and limit.right.value.isupper()
    )


def _by_mutmut(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    for kind, operator in mutation_operators:
        if isinstance(node, kind):
            yield from operator(node)


def _by_us(node: cst.CSTNode) -> Iterable[cst.CSTNode]:
    """One part in place of two, and the other branch."""
    if isinstance(node, cst.BooleanOperation):
        return node.left, node.right
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add | cst.Subtract):
        return (node.left,)
    if isinstance(node, cst.Call) and _called(node.func) in _CHOICES:
        return [part.value for part in _plain_arguments(node.args)] if len(node.args) > 1 else ()
    if isinstance(node, cst.If) and isinstance(node.test, cst.Name | cst.Call | cst.Attribute):
        test = node.test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        return (node.with_changes(test=cst.UnaryOperation(cst.Not(), test)),)
    return ()


def _called(func: cst.BaseExpression) -> str:
    name = func.attr if isinstance(func, cst.Attribute) else func
    return name.value if isinstance(name, cst.Name) else ""


def _plain_arguments(arguments: Sequence[cst.Arg]) -> list[cst.Arg]:
    return [part for part in arguments if not part.star and part.keyword is None]
