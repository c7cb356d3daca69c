"""Production on a Chroma server: one collection per build, and a numbered pointer.

`<name>.pointer.<n>` is created with all it says in one call, and its highest number is what is served. A promotion is bound to
the number it read before its exam, and can only create the next: one that was stopped meanwhile finds it taken.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import re
from collections.abc import Iterator
from pathlib import Path

from kbgate.tasks.errors import Overtaken, Undecided, Unmeasured
from kbgate.tasks.index.store import Client, no_embedder, open_store
from kbgate.tasks.production.lease import Lease, leased
from kbgate.tasks.production.pointer import NOTHING_SERVED, Pointer, is_build, parse
from kbgate.tasks.production.series import Listing, Metadata, create, look, numbers, prune
from kbgate.tasks.records import parse_json

_SAYS = "pointer"
"""The key of a pointer's metadata under which it stands, as JSON."""
_TRIES = 5


def stem_of(name: str) -> str:
    """What the names of a production's pointers begin with."""
    return f"{name}.pointer"


def head(listing: Listing, url: str, name: str, suite: str = "", take_over: bool = False) -> Pointer:
    """The pointer of the highest number; that of an older kbgate where there is none yet."""
    there = numbers(listing, stem_of(name))
    if not there:
        old = listing.get(name, {}).get(_SAYS)
        advice = "restore it: the builds beside it are untouched"
        return NOTHING_SERVED if old is None else parse(str(old).encode(), f"{url} {name}", suite, advice, take_over)
    last = max(there)
    where = f"{url} {stem_of(name)}.{last}"
    pointer = parse(str(there[last].get(_SAYS)).encode(), where, suite, "delete it to serve the number before it", take_over)
    if pointer.number != last:
        raise Unmeasured(f"{where} says that it is number {pointer.number}; delete it to serve the number before it")
    return pointer


def served_names(listing: Listing) -> list[str]:
    """The productions of a server, by the names their suites give."""
    numbered = (re.fullmatch(r"(.+)\.pointer\.[1-9][0-9]*", name) for name in listing)
    old = (name for name, says in listing.items() if _SAYS in says and ".pointer." not in name)
    return sorted({*(match[1] for match in numbered if match), *old})


class ServerProduction:
    """A Chroma server: `<name>.pointer.<n>`, `<name>.lease.<n>`, and a collection per build."""

    def __init__(self, home: Path, suite: str, url: str, name: str, take_over: bool = False):
        self.home, self.suite, self._url, self._name, self._take_over = home, suite, url, name, take_over
        self._lease: Lease | None = None

    def _client(self) -> Client:
        try:
            return open_store(self._url)
        except Exception as error:
            raise Unmeasured(f"the production server {self._url} cannot be reached ({error})") from None

    def _look(self) -> Listing:
        return look(self._client(), self._url)

    def _head(self, listing: Listing) -> Pointer:
        return head(listing, self._url, self._name, self.suite, self._take_over)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """The numbered lease."""
        with leased(self._url, f"{self._name}.lease") as self._lease:
            try:
                yield
            finally:
                self._lease = None

    def read(self) -> Pointer:
        """The pointer of the highest number."""
        return self._head(self._look())

    def move(self, pointer: Pointer) -> None:
        """Create the pointer's number, and decide by what stands there then, not by what the server answered."""
        assert pointer.move is not None
        before = self._head(self._look())
        if (before.token, before.number + 1) != (pointer.move.after, pointer.number):
            raise Overtaken(f"{self._name} moved on to {before.served} ({before.number}) since it was read")
        name = f"{stem_of(self._name)}.{pointer.number}"
        try:
            create(self._client(), name, {_SAYS: _text(pointer)})
        except Exception as error:
            self._decide(pointer, name, error)
        except BaseException:  # interrupted while the server may be at it
            self._decide(pointer, name, InterruptedError("interrupted"))
            raise
        else:
            self._decide(pointer, name, None)

    def _decide(self, pointer: Pointer, name: str, trouble: Exception | None) -> None:
        """Whether the pointer moved; raises `Overtaken` where it did not, `Undecided` where nobody can tell."""
        unknown = f"{name} may be served or not, {self._url} did not say; see kbgate status"
        try:
            listing = self._look()
        except Unmeasured as error:
            raise Undecided(f"{unknown} ({trouble or error})") from None
        there = numbers(listing, stem_of(self._name))
        last = max(there, default=0)
        if there.get(pointer.number, {}).get(_SAYS) == _text(pointer):
            if last == pointer.number or _token_before(there.get(pointer.number + 1, {})) == pointer.token:
                return
            # Its number had been pruned and was free again: it stands below the one that is served, where nobody looks.
            self._delete(name)
        if last < pointer.number:
            raise Undecided(f"{unknown} ({trouble or 'it was created and is not there'})")
        served = self._head(listing).served or "nothing"
        raise Overtaken(f"another promotion moved {self._name} on to {served} (pointer {last}) since this one read it")

    def fence(self, now: dt.datetime) -> Pointer | None:
        """The same pointer under the next number: whoever read the one before it can no longer create theirs."""
        old = self.read()
        pointer = old.then("fenced", old.target, old.previous, now)
        self.move(pointer)
        return pointer

    def settle(self) -> None:
        """Prune old numbers, and keep a copy of the pointer in `<name>`, where an older kbgate wrote it.

        Readers that know no numbers go on reading; an older kbgate refuses to promote over it. Nothing else reads it.
        """
        listing = self._look()
        prune(self._client(), listing, stem_of(self._name))
        for _ in range(_TRIES):
            there = numbers(listing, stem_of(self._name))
            own = listing.get(self._name)
            if not there or (own is not None and own.get(_SAYS) in (None, there[max(there)].get(_SAYS))):
                return  # no number yet, a collection of somebody else's, or the copy is right
            with contextlib.suppress(Exception):
                says = {_SAYS: there[max(there)][_SAYS]}
                if own is None:
                    create(self._client(), self._name, says)
                else:
                    self._client().get_collection(self._name, embedding_function=no_embedder()).modify(metadata=says)
            listing = self._look()  # one that was stopped before it wrote finds here that its copy is old

    def claim(self, build: str) -> None:
        """Write the build into the lease, so that a holder who comes later knows whose it is."""
        if self._lease:
            self._lease.claim(build)

    def place(self, build: str) -> str:
        """The server, whatever the build."""
        return self._url

    def builds(self) -> list[str]:
        """The collections whose names are builds of this suite."""
        return _builds(self._look(), self.suite)

    def leftovers(self) -> list[str]:
        """The builds that the pointer does not name and no lease with a higher number claims."""
        listing = self._look()
        own = self._lease.number if self._lease else 0
        claims = {str(says.get("claims")) for number, says in numbers(listing, f"{self._name}.lease").items() if number > own}
        kept = self._head(listing).builds | claims
        return [build for build in _builds(listing, self.suite) if build not in kept]

    def discard(self, build: str) -> None:
        """Delete a build's collection."""
        listing = self._look()
        if build in listing and build not in self._head(listing).builds:
            self._delete(build)

    def _delete(self, name: str) -> None:
        try:
            self._client().delete_collection(name)
        except Exception as error:
            if name in self._look():  # else another one deleted it first
                raise Unmeasured(f"{name} cannot be deleted from {self._url} ({error})") from None


def _builds(listing: Listing, suite: str) -> list[str]:
    return sorted(name for name in listing if is_build(name, suite))


def _text(pointer: Pointer) -> str:
    return json.dumps(pointer.plain(), sort_keys=True)


def _token_before(says: Metadata) -> str:
    """The token of the pointer that a number replaced."""
    try:
        move = Pointer.of(parse_json(str(says.get(_SAYS)))).move
    except ValueError:
        return ""
    return move.after if move else ""
