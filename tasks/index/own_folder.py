"""A folder for one run alone: it goes when the run is over, and where the run was killed, when the next one begins.

Who is alive is told by a lock of the kernel on a file in the folder: it is free again when its holder is dead, however it died.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout, has_fcntl

_PREFIX, _OWNER = "kbgate-run-", "owner.lock"
_ATTEMPTS = 5


@contextlib.contextmanager
def own_folder() -> Iterator[Path]:
    """A folder of this run, its own whatever else runs, removed at the end whatever happens; first those of the dead are."""
    _sweep()
    folder, lock = _taken()
    try:
        yield folder
    finally:
        if lock is not None:
            lock.release()
        shutil.rmtree(folder, ignore_errors=True)


def _taken() -> tuple[Path, FileLock | None]:
    """A new folder and the lock that says it is in use; None where the kernel has none: then nothing is ever swept."""
    for _ in range(_ATTEMPTS):
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        if not _has_locks():
            return folder, None
        lock = _lock(folder)
        # A sweeper may be faster, between the file and its lock, and then the folder is gone.
        with contextlib.suppress(OSError):
            lock.acquire()
            if (folder / _OWNER).exists():
                return folder, lock
            lock.release()
    return folder, None


def _sweep() -> None:
    """Remove the folders of runs of this user that are no longer alive; what cannot be told apart stays."""
    if not _has_locks():
        return
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError, Timeout):
            if _is_ours(folder) and (folder / _OWNER).is_file():
                with _lock(folder).acquire(timeout=0):
                    shutil.rmtree(folder, ignore_errors=True)


def _is_ours(folder: Path) -> bool:
    if folder.is_symlink() or not folder.is_dir():
        return False
    return os.name == "nt" or folder.stat().st_uid == os.getuid()


def _has_locks() -> bool:
    return os.name == "nt" or has_fcntl


def _lock(folder: Path) -> FileLock:
    # Never a soft lock, which is a mere file: one whose holder was killed would be held for ever.
    return FileLock(folder / _OWNER, thread_local=False, fallback_to_soft=False)
