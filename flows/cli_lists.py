"""`kbgate metrics | checks | causes | settings`: what there is, each list made from the parts and models themselves."""

from __future__ import annotations

import sys

import typer

from kbgate.flows.terminal import console, table_of


def add_to(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    for command in (metrics, checks, causes, settings):
        app.command(command.__name__)(command)


def metrics() -> int:
    """List every metric: what it says, its direction, its source."""
    from kbgate.tasks.metrics import AGGREGATES, METRICS, better, part_of
    from kbgate.tasks.tables import Figure

    rows = []
    for name in sorted([*METRICS, *AGGREGATES]):
        part = part_of(Figure(name))
        span = f"{part.low:g} to {part.high:g}"
        shown = f"{name}@k" if part.at_k else name
        rows.append((shown, better(part), span, part.unit, str(part.version), part.summary, part.source))
    head = ("metric", "better", "range", "unit", "version", "what it says", "source")
    console(sys.stdout).print(table_of(head, rows))
    return 0


def checks() -> int:
    """List every check of the gate: its level, whether an [[allow]] may excuse it, what it holds."""
    from kbgate.tasks.gate import CHECKS

    rows = [(name, str(part.level), "yes" if part.excusable else "no", part.summary) for name, part in CHECKS.items()]
    console(sys.stdout).print(table_of(("check", "level", "excusable", "what it holds"), rows))
    return 0


def causes() -> int:
    """List every cause a diagnosis can name, in the order in which they are looked for."""
    from kbgate.tasks.diagnosis.causes import in_order

    rows = [(part.name, ", ".join(part.changed) or "-", part.summary) for part in in_order()]
    console(sys.stdout).print(table_of(("cause", "needs a change of", "what it says"), rows))
    return 0


def settings() -> int:
    """List every key of suite.toml: its default, what is allowed, what it means."""
    from kbgate.tasks.settings.listing import keys_of_suite

    rows = [(key.path, key.default, key.allowed, key.meaning) for key in keys_of_suite()]
    console(sys.stdout).print(table_of(("key", "default", "allowed", "meaning"), rows))
    return 0
