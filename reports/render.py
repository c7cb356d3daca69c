"""A finished exam as Markdown: every template of `templates/report.md/`, in the order of their names.

A section is one file; dropping a file into the folder adds one. A misspelt variable is an error, not a blank.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from kbgate.reports.view import view
from kbgate.tasks.conclusions import Evaluation
from kbgate.tasks.gate.opening import opening
from kbgate.tasks.outcomes import PullRequest
from kbgate.tasks.runs.document import VerdictDocument
from kbgate.tasks.runs.parts import FigurePart

if TYPE_CHECKING:
    from jinja2 import Environment

COMMENT_LIMIT = 60_000
"""GitHub refuses comments of 65,536 characters."""
_TEMPLATES = Path(__file__).parent / "templates"
_SPECIAL = re.compile(r"([\\`*_\[\]<>|~&$])|^([#+=-])|(?<=^\d)([.)])")
_LINKING = re.compile(r"(?i)((?<!\w)[@#]|www|://)(?=\S)")
"""What makes a mention, a reference or a bare link; a backslash does not stop these, an invisible character does."""


def render_markdown(evaluation: Evaluation, document: VerdictDocument) -> str:
    """The report of one evaluation, from its verdict document; ends with one line end."""
    environment = _environment(_TEMPLATES)
    names = sorted(path.name for path in (_TEMPLATES / "report.md").glob("*.md.j2"))
    context = {"view": view(evaluation, document), "document": document}
    parts = [environment.get_template(f"report.md/{name}").render(context).strip() for name in names]
    return "\n\n".join(part for part in parts if part) + "\n"


def render_comment(result: PullRequest, document: VerdictDocument) -> str:
    """The comment on a pull request, under 60,000 characters whatever the input."""
    context = {
        "view": view(result.deciding, document),
        "document": document,
        "name": result.name,
        "first": opening(result.deciding.exam, result.deciding.verdict),
        "ref": result.ref,
        "own": result.own,
        "full": result.full,
    }
    text: str = _environment(_TEMPLATES).get_template("comment.md.j2").render(context).strip() + "\n"
    if len(text) < COMMENT_LIMIT:
        return text
    return text[: COMMENT_LIMIT - 100].rpartition("\n")[0] + "\n\nCut here; the run's report.md has the whole.\n"


@lru_cache(maxsize=2)
def _environment(folder: Path) -> Environment:
    """The templates of a folder, each compiled once: that takes longer than filling it."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    # Markdown is no HTML: autoescape would print &amp;#39;. Every foreign text goes through the filter `safe_text`.
    environment = Environment(loader=FileSystemLoader(folder), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {
        "safe_text": safe_text,
        "figure": figure,
        "signed": signed,
        "interval": interval,
        "p_value": p_value,
    }
    return environment


def safe_text(value: object, limit: int = 200) -> str:
    """Text of a card, query or id made harmless in Markdown: no table, link, mention, heading or HTML comes of it."""
    text = "".join(c if unicodedata.category(c)[0] != "C" else " " for c in str(value))
    text = " ".join(text.split())
    if len(text) > limit:
        text = text[: limit - 1] + "…"
    return _LINKING.sub("\\1\u200b", _SPECIAL.sub(lambda match: "\\" + match.group(), text))


def figure(value: float | None) -> str:
    """A figure with three decimals; a dash where nothing was measured."""
    return "–" if value is None else f"{value:.3f}"


def interval(row: FigurePart) -> str:
    """The 95 % interval of a row: of its delta, of its current figure where it has none."""
    if row.low is None:
        return "none: a figure of the whole run" if row.clusters is None else "–"
    show = figure if row.delta is None else signed
    return f"{show(row.low)} to {show(row.high)}"


def p_value(row: FigurePart) -> str:
    """The p of a row, or why it has none."""
    if row.p is not None:
        return figure(row.p)
    if row.clusters is None:
        return "none: a figure of the whole run"
    return "nothing to compare" if row.baseline is None else "neither way is worse"


def signed(value: float | None) -> str:
    """A change with its sign."""
    return "–" if value is None else f"{value:+.3f}"
