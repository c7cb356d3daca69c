"""Where production is: the one a suite promotes to, the builds in it, and `resolve` for its readers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from kbgate.tasks.errors import Refused, Unmeasured, did_you_mean
from kbgate.tasks.identity import HASH, identity_of
from kbgate.tasks.index.store import close_store, is_server, open_store
from kbgate.tasks.production.folder import POINTER, FolderProduction
from kbgate.tasks.production.pointer import Production, Target, is_build
from kbgate.tasks.production.series import look
from kbgate.tasks.production.server import ServerProduction, head, served_names
from kbgate.tasks.settings import Suite
from kbgate.tasks.settings.sections import server_mistake


def open_production(suite: Suite, home: Path, take_over: bool = False) -> Production:
    """The production of a suite, as its [production] says; a folder under kbgate's home where it says nothing.

    `take_over`: what another suite, or an older kbgate, serves from there is left behind knowingly; otherwise it is refused.
    """
    settings, key = suite.production, identity_of(suite).key
    default = _default_folder(home / "production", suite.name, key).resolve()
    if settings.url:
        return ServerProduction(default, key, settings.url, settings.collection or suite.name, take_over)
    return FolderProduction((suite.folder / settings.path).resolve() if settings.path else default, key, take_over)


def _default_folder(folder: Path, name: str, key: str) -> Path:
    """The place of a suite among others of its name; that of an older kbgate, the bare name, while it is nobody else's."""
    own, older = folder / key, folder / name
    if own.exists() or not (older / POINTER).exists():
        return own
    try:
        builds = FolderProduction(older, "").read().builds
    except Refused:
        return older  # it says itself what is wrong with it
    return older if any(is_build(build, suite) for build in builds for suite in (name, key)) else own


def namesakes(suite: Suite, home: Path) -> list[str]:
    """Where others of its name serve from, while it has no place of its own: it may be one of them, moved or begun anew."""
    folder, key = home / "production", identity_of(suite).key
    if suite.production.url or suite.production.path or (_default_folder(folder, suite.name, key) / POINTER).exists():
        return []
    stands = sorted(folder.glob(f"{suite.name}-{'?' * HASH}/{POINTER}"))
    return [str(file.parent) for file in stands if file.parent.name != key]


@contextlib.contextmanager
def candidate(production: Production, build: str) -> Iterator[str]:
    """The place of a new build, its client closed at the end; a build that could not be finished is removed."""
    production.claim(build)
    place = production.place(build)
    try:
        if not is_server(place):
            Path(place).mkdir(parents=True)
        yield place
    except BaseException:
        drop(production, build)
        raise
    finally:
        close_store(place)


def drop(production: Production, build: str) -> None:
    """Remove a build that came to nothing. Where that fails too, what went wrong first is told; a later sweep removes it."""
    with contextlib.suppress(Exception):
        production.discard(build)


def resolve(where: str | Path, collection: str = "") -> tuple[Target, str]:
    """For readers: what is served, and its place, from a production folder or a Chroma server. Raises `Refused` for none.

    `where`: the folder, or the server's URL; `collection`: which production of a server, by the name its suite gives, if it has
    several. Returns the target, whose `build` names the collection, and the folder or URL to open. Read it again when it may
    have moved, and open a new client when it has.
    """
    if is_server(str(where)):
        mistake = server_mistake(str(where))
        if mistake:
            raise Refused(f"the address of the production server {mistake}")
        return _served_from(str(where), collection), str(where)
    home = Path(where)
    target = FolderProduction(home, "").read().target
    if target is None:
        raise Refused(f"nothing was ever promoted to {home}")
    if not (home / target.place).is_dir():  # Chroma would make an empty store there
        raise Refused(f"{target.build} is served from {home} and is not there; next: kbgate rollback")
    return target, str(home / target.place)


def _served_from(url: str, collection: str) -> Target:
    try:
        listing = look(open_store(url), url)
    except Unmeasured:
        raise
    except Exception as error:
        raise Unmeasured(f"the production server {url} cannot be reached ({error})") from None
    names = served_names(listing)
    if not collection and len(names) > 1:
        raise Refused(f"{url} serves {len(names)} productions; name one of them: {', '.join(names)}")
    if collection and collection not in names:
        raise Refused(f"nothing was ever promoted to '{collection}' of {url}; {did_you_mean(collection, names)}")
    target = head(listing, url, collection or names[0]).target if names else None
    if target is None:
        raise Refused(f"nothing was ever promoted to {url}")
    if target.build not in listing:
        raise Refused(f"{target.build} is served from {url} and is not there; next: kbgate rollback")
    return target
