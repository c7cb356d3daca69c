"""The lease of a production on a server: one promotion at a time, across machines that share no folder.

`<name>.lease.<n>` is taken by creating n + 1 once n has ended, or once its heartbeat has not changed for three beats on the
clock of whoever watches it. Only its owner writes it. A lease spares double work and no more: its holder may be stopped for
longer than three beats and wake up. What keeps such a one from doing harm is the numbered pointer.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from typing import Final
from uuid import uuid4

from kbgate.tasks.errors import Refused, Unmeasured
from kbgate.tasks.index.store import connect, no_embedder
from kbgate.tasks.production.lock import LOCK_WAIT_S
from kbgate.tasks.production.series import Metadata, create, look, numbers, prune

BEAT_S = 10.0
_BEATS: Final = 3
_POLLS = 5
"""Looks in a beat while another one holds the lease."""
_PARTING_S = 5.0


class Lease:
    """A lease that is held, and its heartbeat."""

    def __init__(self, url: str, stem: str):
        # A client of its own: an exam closes and opens the shared one, and this one beats meanwhile.
        self._client, self._url, self.stem = connect(url), url, stem
        self.number = 0
        self._says: dict[str, str | int | float | bool] = {
            "holder": uuid4().hex,
            "host": f"{socket.gethostname()}, process {os.getpid()}",
            "every_s": BEAT_S,
            "beat": 0,
            "claims": "",
            "ended": False,
        }
        self._writing, self._stopped = threading.Lock(), threading.Event()
        self._heart = threading.Thread(target=self._beat, name=stem, daemon=True)

    def take(self, wait_s: float) -> None:
        """Wait for whoever holds it to end or to stop beating, then hold it."""
        until = time.monotonic() + wait_s
        seen, since = (0, ""), time.monotonic()
        while True:
            asked = time.monotonic()
            leases = numbers(look(self._client, self._url), self.stem)
            number = max(leases, default=0)
            last = leases.get(number, {})
            state = (number, str(sorted(last.items())))
            if state != seen:
                seen, since = state, time.monotonic()
            # Since the first answer that said so, until before the last question: a watcher that was stopped itself counts
            # no beat that it could not have seen.
            silent = asked - since > _BEATS * max(BEAT_S, _period(last))
            if (number == 0 or last.get("ended") is True or silent) and self._create(number + 1):
                return
            if time.monotonic() > until:
                host = last.get("host", "unknown")
                raise Refused(f"another promotion ({host}) holds {self.stem}.{number} of {self._url} for ten minutes")
            time.sleep(BEAT_S / _POLLS)

    def _create(self, number: int) -> bool:
        """Whether this one created a number, and it is the highest."""
        trouble: Exception | None = None
        try:
            create(self._client, f"{self.stem}.{number}", self._says)
        except Exception as error:
            trouble = error
        # Not by what the server answered, which may be lost or repeated, but by what stands there now.
        listing = look(self._client, self._url)
        leases = numbers(listing, self.stem)
        if trouble and number not in leases:
            raise Unmeasured(f"{self.stem}.{number} cannot be created on {self._url} ({trouble})") from None
        if max(leases, default=0) != number or leases[number].get("holder") != self._says["holder"]:
            return False
        self.number = number
        prune(self._client, listing, self.stem)
        self._heart.start()
        return True

    def claim(self, build: str) -> None:
        """Write down which build its holder is about to make."""
        self._write(claims=build)

    def end(self) -> None:
        """Stop beating, and say so."""
        self._stopped.set()
        if self._heart.is_alive():
            self._heart.join(_PARTING_S)
        with contextlib.suppress(Exception):  # a server that is lost: whoever waits sees three beats missing
            if self.number:
                self._write(ended=True)
        self._client.close()

    def _beat(self) -> None:
        while not self._stopped.wait(BEAT_S):
            with contextlib.suppress(Exception):  # the next beat may arrive
                self._write(beat=int(self._says["beat"]) + 1)

    def _write(self, **says: str | int | float | bool) -> None:
        with self._writing:
            self._says.update(says)
            name = f"{self.stem}.{self.number}"
            self._client.get_collection(name, embedding_function=no_embedder()).modify(metadata=dict(self._says))


def _period(metadata: Metadata) -> float:
    """How often a lease's owner says that it beats, in seconds; 0 where nothing sensible stands there."""
    value = metadata.get("every_s")
    return float(value) if isinstance(value, (int, float)) and 0 < value < LOCK_WAIT_S else 0.0


@contextlib.contextmanager
def leased(url: str, stem: str, wait_s: float = LOCK_WAIT_S) -> Iterator[Lease]:
    """Hold the lease of a production while the block lasts."""
    try:
        lease = Lease(url, stem)
    except Exception as error:
        raise Unmeasured(f"the production server {url} cannot be reached ({error})") from None
    try:
        lease.take(wait_s)
        yield lease
    finally:
        lease.end()
