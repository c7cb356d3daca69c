"""What each run of a suite came to, a line a run, in the order they ended.

`.kbgate/history/<suite>.jsonl`, only ever appended to, each line in one write, so that runs which end together do not mix.
A line that cannot be read (a full disk, a power cut) is skipped by readers; it never hides the others.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kbgate.tasks.domain import Previous
from kbgate.tasks.records import append_line, parse_json

SCHEMA = 1


def path_of(home: Path, suite: str) -> Path:
    """The history file of a suite."""
    return home / "history" / f"{suite}.jsonl"


def append_history(home: Path, document: dict[str, Any]) -> None:
    """Append one run, from its verdict document: verdict, mode, fingerprints, means with n, counts, changed cases."""
    kept = (
        "suite", "run", "time", "mode", "method", "verdict", "exit_code", "code", "fingerprints", "kb", "as_of", "counts",
        "newly_failing", "newly_passing",
    )  # fmt: skip
    line = {
        "schema": SCHEMA,
        **{name: document[name] for name in kept},
        "means": {f["metric"]: {"mean": f["current"], "n": f["n"]} for f in document["figures"] if not f["slice"]
                  and f["lane"] == document["method"]},
    }  # fmt: skip
    append_line(path_of(home, document["suite"]), line)


def read_history(home: Path, suite: str) -> list[dict[str, Any]]:
    """Every readable line, oldest first."""
    path = path_of(home, suite)
    if not path.exists():
        return []
    lines = []
    for text in path.read_text(encoding="utf-8", errors="replace").split("\n"):
        try:
            line = parse_json(text)
        except ValueError:
            continue
        if isinstance(line, dict) and line.get("schema") == SCHEMA:
            lines.append(line)
    return lines


def previous_run(home: Path, suite: str, mode: str, golden: str) -> Previous | None:
    """The last run of a suite in this mode, where it asked the same golden set; None where there is none or it asked another.

    `golden`: the golden set's fingerprint.
    """
    lines = [line for line in read_history(home, suite) if line["mode"] == mode]
    if not lines or lines[-1]["fingerprints"].get("golden") != golden:
        return None
    means = {key: mean for key, mean in lines[-1]["means"].items() if mean["mean"] is not None}
    return Previous(lines[-1]["run"], means)
