"""Where production is: the one a suite promotes to, the builds in it, and `resolve` for its readers."""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from kbgate.tasks.errors import Refused
from kbgate.tasks.index.store import close_store
from kbgate.tasks.production.folder import FolderProduction
from kbgate.tasks.production.pointer import Production, Target
from kbgate.tasks.production.server import ServerProduction
from kbgate.tasks.settings import Suite


def open_production(suite: Suite, home: Path) -> Production:
    """The production of a suite, as its [production] says; a folder under kbgate's home where it says nothing."""
    settings = suite.production
    default = (home / "production" / suite.name).resolve()
    if settings.url:
        # One folder a machine, whatever home a run has: two homes that promote to one server must share its lock.
        key = hashlib.sha256(f"{settings.url} {settings.collection or suite.name}".encode()).hexdigest()[:16]
        default = Path(tempfile.gettempdir()) / f"kbgate-server-{key}"
        return ServerProduction(default, suite.name, settings.url, settings.collection or suite.name)
    return FolderProduction((suite.folder / settings.path).resolve() if settings.path else default, suite.name)


@contextlib.contextmanager
def candidate(production: Production, build: str) -> Iterator[str]:
    """The place of a new build, its client closed at the end; a build that could not be finished is removed."""
    place = production.place(build)
    try:
        if "://" not in place:
            Path(place).mkdir(parents=True)
        yield place
    except BaseException:
        production.discard(build)
        raise
    finally:
        close_store(place)


def sweep(production: Production) -> None:
    """Remove builds the pointer does not name: what a killed promotion left, what is older than `keep`.

    The caller holds the lock, so no other promotion's candidate is among them.
    """
    pointer = production.read()
    if pointer.target is None:
        # No pointer, or one that was moved away: nothing says which of the builds are rubbish.
        return
    served = {target.build for target in (pointer.target, *pointer.previous) if target}
    for build in production.builds():
        if build not in served:
            production.discard(build)


def resolve(home: Path) -> tuple[Target, str]:
    """For readers: what is served from a production folder, and the folder of its store. Raises `Refused` for none.

    Read it again when it may have moved, and open a new client when it has.
    """
    target = FolderProduction(home, "").read().target
    if target is None:
        raise Refused(f"nothing was ever promoted to {home}")
    return target, str(home / target.place)
