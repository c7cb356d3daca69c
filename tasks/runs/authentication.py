"""Is a verdict ours? A seal shows that it was not damaged; only a key shows who wrote it.

With KBGATE_KEY in the environment every verdict carries an HMAC over all of verdict.json, which holds the digests of the run's
other files; a verdict without it, or of another key, is believed by nobody who has the key.
"""

from __future__ import annotations

from kbgate.tasks.records import canonical
from kbgate.tasks.runs.document import VerdictDocument
from kbgate.tasks.secret import NAME, secret

UNAUTHENTICATED = (
    f"index fingerprint, build and time are not authenticated, nor the rankings that the rest follows from: {NAME} is not set"
)


def authenticated(document: VerdictDocument) -> VerdictDocument:
    """The verdict with its HMAC, where there is a key."""
    key = secret()
    return document.model_copy(update={"hmac": key.authenticate(_text_of(document)) if key else ""})


def doubt_of(document: VerdictDocument) -> str:
    """Why this process's key does not vouch for a verdict; "" where it does, or there is none."""
    key = secret()
    if key is None:
        return ""
    if not document.hmac:
        return f"it carries no HMAC, and {NAME} is set: nothing says that it is ours"
    return "" if key.made(document.hmac, _text_of(document)) else f"its HMAC is not by this {NAME}"


def _text_of(document: VerdictDocument) -> str:
    return "kbgate verdict\n" + canonical({name: value for name, value in document.plain().items() if name != "hmac"})
