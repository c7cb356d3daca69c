"""How the process ends from outside: told to stop, or by a reader that went away. Neither may be taken for a verdict.

A process that a signal kills is 128 and more, one that writes into a closed pipe is Python's own 1: the first has no meaning
here and the second reads as BLOCK. So a signal is an ending like any other, by which what was begun is cleared away, and what
nobody reads any more is thrown away.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from types import FrameType
from typing import TextIO, cast

_SIGNALS = ("SIGTERM", "SIGHUP")
"""Ctrl-C has an exception of its own."""


class Stopped(BaseException):
    """The process was told to stop. No `Exception`: what goes on after a failed question must not go on after this."""


def stop_at_signals() -> None:
    """Let a signal that would kill this process end it with exit code 4, once what it began is cleared away."""
    for name in _SIGNALS:
        number = getattr(signal, name, None)
        # What was ignored when we were started (nohup) is to be ignored.
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _stop)


def _stop(number: int, frame: FrameType | None) -> None:
    signal.signal(number, _stop_at_once)
    # A pool waits for its workers at its end: they are told, too. Nothing is imported while a signal is handled.
    pools = sys.modules.get("multiprocessing")
    for child in pools.active_children() if pools else ():
        child.terminate()
    raise Stopped(f"stopped by {signal.Signals(number).name} before it was done")


def _stop_at_once(number: int, frame: FrameType | None) -> None:
    """Told a second time: not even what was begun is cleared away; the next run does that."""
    os._exit(4)


class _Heard:
    """A stream that may lose its reader: what is written then is thrown away."""

    def __init__(self, stream: TextIO, lost: type[OSError]):
        """`lost`: the errors that mean there is no reader."""
        self._stream, self._lost = stream, lost

    def write(self, text: str) -> int:
        """Write, wherever it goes."""
        with self._ignored():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush, wherever it goes."""
        with self._ignored():
            self._stream.flush()

    @contextlib.contextmanager
    def _ignored(self) -> Iterator[None]:
        try:
            yield
        except self._lost:
            # The descriptor leads nowhere from here on: what is still in a buffer must not fail once more at the end.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


def speak_on() -> None:
    """Let output whose reader is gone change no exit code.

    On standard output only a closed pipe is a reader's choice; a full disk is not, and stays an error. Of standard error
    nobody could be told what is wrong with it.
    """
    sys.stdout = cast(TextIO, _Heard(_open(sys.stdout), BrokenPipeError))
    sys.stderr = cast(TextIO, _Heard(_open(sys.stderr), OSError))


def _open(stream: TextIO | None) -> TextIO:
    """A stream, or where there is none (`>&-`) one that leads nowhere; no character fails for a narrow encoding."""
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 - for as long as the process lives
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
    return stream
