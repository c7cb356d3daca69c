"""Events for a Prefect server, posted over HTTP until it has them.

Prefect's own `emit_event` forgets what it could not send.
"""

from __future__ import annotations

import fnmatch
import time
import urllib.request
from pathlib import Path
from typing import Any
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
_Json = dict[str, Any]


def emit(api: str, suite: str, payload: dict[str, str]) -> str:
    """Tell a Prefect API that something came into a suite's knowledge base; returns the event's id.

    The id stays the same over the tries, so an event that arrived twice starts one run.
    """
    event = {
        "id": str(uuid4()),
        "occurred": door.now().isoformat(),
        "event": "kb.ingested",
        "resource": {"prefect.resource.id": _resource(suite)},
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


def listeners(api: str, suite: str) -> str:
    """Who will examine what came into a suite, as half a sentence; raises `KbgateError` where nobody would.

    An event that nobody listens to is taken all the same, and forgotten.
    """
    url = httpx.URL(f"{api.rstrip('/')}/")
    try:
        with httpx.Client(base_url=url, transport=_Patient(proxy=_proxy_for(url)), timeout=10) as client:
            automations = client.post("automations/filter", json={}).raise_for_status().json()
            deployments = [deployment for one in automations if _hears(one, suite) for deployment in _started_by(one)]
            told = [_described(client.get(f"deployments/{name}").raise_for_status().json()) for name in deployments]
            heard = any(_hears(one, suite) for one in automations)
    except (httpx.HTTPError, ValueError, KeyError, TypeError, AttributeError) as error:
        return f"who examines it this API does not say ({type(error).__name__})"
    if told:
        return f"{' and '.join(told)} will examine it"
    if heard:
        return "an automation of this API takes it from here"
    raise KbgateError(
        f"nothing on {api} starts on kb.ingested, so nobody would examine it; next: kbgate serve, or "
        "prefect deploy --prefect-file deploy/prefect.yaml --name after-ingest"
    )


def _hears(automation: _Json, suite: str) -> bool:
    """Whether an automation that is switched on waits for our event, of this suite."""
    waiting, seen = [automation["trigger"]] if automation["enabled"] else [], []
    while waiting:
        trigger = waiting.pop()
        seen.append(trigger)
        waiting += trigger.get("triggers") or []
    return any("kb.ingested" in (trigger.get("expect") or ()) and _matches(trigger, suite) for trigger in seen)


def _matches(trigger: _Json, suite: str) -> bool:
    wanted = (trigger.get("match") or {}).get("prefect.resource.id", "*")
    return any(fnmatch.fnmatch(_resource(suite), one) for one in ([wanted] if isinstance(wanted, str) else wanted))


def _started_by(automation: _Json) -> list[str]:
    return [action["deployment_id"] for action in automation["actions"] if action.get("deployment_id")]


def _described(deployment: _Json) -> str:
    pool = deployment.get("work_pool_name")
    where = f" in work pool {pool}" if pool else ""
    idle = ", once a worker or kbgate serve is there to run it," if deployment.get("status") == "NOT_READY" else ""
    return f"deployment {deployment['name']}{where}{idle}"


def _resource(suite: str) -> str:
    return f"{EVENTS}{folder_of(Path(suite))}"


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
