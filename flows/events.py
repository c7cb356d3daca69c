"""Events for a Prefect server, posted over HTTP until it has them.

Prefect's own `emit_event` forgets what it could not send.
"""

from __future__ import annotations

import time
import urllib.request
from pathlib import Path
from uuid import uuid4

import httpx

from kbgate.flows import door
from kbgate.tasks.errors import KbgateError
from kbgate.tasks.identity import EVENTS, folder_of

_RETRIES = 5
"""Tries of a connection after the first: httpx waits 0, 0.5, 1, 2 and 4 s between them."""
_WAITS_S = (1.0, 2.0, 4.0)
"""Between the tries of a request that reached a server which did not take it."""
_TOO_MANY_REQUESTS = 429


def emit(api: str, suite: str, payload: dict[str, str]) -> str:
    """Tell a Prefect API that something came into a suite's knowledge base; returns the event's id.

    The id stays the same over the tries, so an event that arrived twice starts one run.
    """
    event = {
        "id": str(uuid4()),
        "occurred": door.now().isoformat(),
        "event": "kb.ingested",
        "resource": {"prefect.resource.id": f"{EVENTS}{folder_of(Path(suite))}"},
        "payload": {"suite": suite, **payload},
    }
    url = httpx.URL(f"{api.rstrip('/')}/events")
    try:
        with httpx.Client(transport=_Patient(proxy=_proxy_for(url), retries=_RETRIES), timeout=10) as client:
            answer = client.post(url, json=[event])
    except httpx.HTTPError as error:
        trouble = f"{type(error).__name__}: {error}"
    else:
        if answer.status_code == httpx.codes.NO_CONTENT:
            return str(event["id"])
        trouble = f"HTTP {answer.status_code}"
    raise KbgateError(f"the event was not taken by the Prefect API ({trouble}); nothing will be examined")


class _Patient(httpx.HTTPTransport):
    """Sends a request again where the server broke off or was too busy; a connection that fails is httpx's own to retry."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """The answer of the first try that a server took, or else of the last one."""
        for wait in _WAITS_S:
            try:
                answer = super().handle_request(request)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                raise
            except httpx.TransportError:
                pass
            else:
                if answer.status_code != _TOO_MANY_REQUESTS and not answer.is_server_error:
                    return answer
                answer.close()
            time.sleep(wait)
        return super().handle_request(request)


def _proxy_for(url: httpx.URL) -> str | None:
    """The environment's proxy for an address: httpx looks for it only where it is given no transport."""
    known = urllib.request.getproxies()
    return None if urllib.request.proxy_bypass(url.host) else known.get(url.scheme) or known.get("all")
