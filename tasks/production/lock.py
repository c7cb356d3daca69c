"""A lock of the kernel: one process of one machine at a time, and free again when its holder is dead."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout, has_fcntl

from kbgate.tasks.errors import Refused, Unmeasured

LOCK_WAIT_S = 600.0


@contextlib.contextmanager
def kernel_lock(path: Path, wait_s: float, held_by: str) -> Iterator[None]:
    """Hold a lock while the block lasts; `held_by`: whom `Refused` names where another one holds it too long."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if os.name != "nt" and not has_fcntl:
        raise Unmeasured(f"{path} needs a lock of the kernel, and this Python has none (fcntl); promote from one that has")
    # Every call has a lock of its own, so that two in one process exclude each other. Never a soft lock, which is a mere
    # file: one whose holder was killed would be held for ever.
    lock = FileLock(path, wait_s, thread_local=False, poll_interval=0.05, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout:
        raise Refused(f"{held_by} {path} for ten minutes") from None
    try:
        yield
    finally:
        lock.release()
