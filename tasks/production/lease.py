"""The lock of a production: one promotion at a time."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from filelock import FileLock, Timeout, has_fcntl

from kbgate.tasks.errors import Refused, Unmeasured
from kbgate.tasks.production.pointer import Production

_LOCK_WAIT_S = 600.0


@contextlib.contextmanager
def locked(production: Production) -> Iterator[None]:
    """Hold the production's lock: comparison and promotion happen under one, so that no two pass against one baseline.

    A kernel lock: it is gone with the process that held it, however that one ended. Waits ten minutes, then `Refused`.
    """
    production.home.mkdir(parents=True, exist_ok=True)
    path = production.home / ".lock"
    if os.name != "nt" and not has_fcntl:
        raise Unmeasured(f"{path} needs a lock of the kernel, and this Python has none (fcntl); promote from one that has")
    # Every call has a lock of its own, so that two in one process exclude each other. Never a soft lock, which is a mere
    # file: one whose holder was killed would be held for ever.
    lock = FileLock(path, _LOCK_WAIT_S, thread_local=False, poll_interval=0.05, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout:
        raise Refused(f"another promotion holds {path} for ten minutes") from None
    try:
        yield
    finally:
        lock.release()
