"""What a run is given once, at its door, and hands down: what time it is, and where kbgate keeps its things.

Commands and the bodies of flows ask here, and nothing else does: a flow that a worker runs has the same home as a command
typed in the same environment.
"""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path

HOME = "KBGATE_HOME"
"""The variable that says where runs, vectors, history and production are kept."""


def now() -> dt.datetime:
    """What time it is, to the second, UTC."""
    return dt.datetime.now(dt.UTC).replace(microsecond=0)


def home_of(given: str = "") -> Path:
    """Where runs, vectors, history and production are kept: as given, else $KBGATE_HOME, else .kbgate in this folder."""
    return Path(given or os.environ.get(HOME, "").strip() or ".kbgate").expanduser()
