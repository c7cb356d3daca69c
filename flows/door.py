"""What a run is given once, at its door, and hands down: what time it is.

Commands and the bodies of flows ask here, and nothing else does.
"""

from __future__ import annotations

import datetime as dt


def now() -> dt.datetime:
    """What time it is, to the second, UTC."""
    return dt.datetime.now(dt.UTC).replace(microsecond=0)
