"""The key that verdicts are authenticated with: read from the environment, kept in this process, given to nobody.

Whoever runs kbgate sets KBGATE_KEY. It stands in no file, no log and no sentence. While a command or a flow runs it is taken
out of the environment: no process that is started meanwhile inherits it, and no code that kbgate is asked to run reads it.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
from collections.abc import Iterator
from typing import NoReturn

from kbgate.tasks.errors import InputError, Problem

NAME = "KBGATE_KEY"


class Secret:
    """A key, of which nothing can be had but what it makes of a text."""

    __slots__ = ("__key",)

    def __init__(self, value: str):
        """`value`: as the environment has it; raises `InputError` where it is blank."""
        if not value.strip():
            raise InputError([Problem(NAME, 0, f"is set and blank, which is no key; give it a value, or: unset {NAME}")])
        self.__key = os.fsencode(value)

    def authenticate(self, text: str) -> str:
        """HMAC-SHA256 of a text, 64 hex digits."""
        return hmac.new(self.__key, text.encode(), hashlib.sha256).hexdigest()

    def made(self, authentication: str, text: str) -> bool:
        """Whether this key made an authentication of this text; takes as long whatever is wrong."""
        return hmac.compare_digest(self.authenticate(text).encode(), authentication.encode())

    def __repr__(self) -> str:
        return f"<{NAME}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{NAME} leaves this process by no way")


_held: Secret | None = None


def secret() -> Secret | None:
    """This process's key, None where it was given none; raises `InputError` where it is blank."""
    given = os.environ.get(NAME)
    return _held if given is None else Secret(given)


def environment() -> dict[str, str]:
    """The environment for a process that is started: without the key."""
    return {name: value for name, value in os.environ.items() if name != NAME}


@contextlib.contextmanager
def withheld() -> Iterator[None]:
    """Hold the key back from the environment until the end of the block; raises `InputError` where it is blank."""
    global _held
    given = os.environ.get(NAME)
    if given is None:
        yield
        return
    before, _held = _held, Secret(given)
    del os.environ[NAME]
    try:
        yield
    finally:
        os.environ[NAME], _held = given, before
