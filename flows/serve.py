"""The four flows served from one process: the same deployments as deploy/prefect.yaml, without a worker."""

from __future__ import annotations

from typing import Any

from kbgate.flows import after_ingest, nightly, promote, pull_request
from kbgate.tasks.errors import InputError, KbgateError, Problem
from kbgate.tasks.secret import NAME, secret


def serve_all(folder: str) -> None:
    """Serve until stopped; needs PREFECT_API_URL, because a server of its own would die with it."""
    import os

    if not os.environ.get("PREFECT_API_URL"):
        raise KbgateError("PREFECT_API_URL is not set; start a server (prefect server start) and name its API")
    if secret() is not None:
        sentence = "is set, and a flow that is served runs in a process of its own, which is given no key; unset it here, and"
        raise InputError([Problem(NAME, 0, f"{sentence} start a worker where it is set: prefect worker start --pool kbgate")])
    from prefect import serve
    from prefect.client.schemas.objects import ConcurrencyLimitConfig, ConcurrencyLimitStrategy
    from prefect.deployments.runner import EntrypointType  # type: ignore[attr-defined]
    from prefect.events import DeploymentEventTrigger
    from prefect.schedules import Cron

    one = ConcurrencyLimitConfig(limit=1, collision_strategy=ConcurrencyLimitStrategy.ENQUEUE)
    # By module: by file, Prefect would look for the plain body.
    common: dict[str, Any] = {"entrypoint_type": EntrypointType.MODULE_PATH, "tags": ["kbgate"]}
    trigger = DeploymentEventTrigger(
        name="kbgate-after-ingest",
        expect={"kb.ingested"},
        match={"prefect.resource.id": "kbgate.suite.*"},
        for_each={"prefect.resource.id"},
        parameters={
            "suite": "{{ event.payload.suite | default('') | string }}",
            "batch": "{{ event.payload.batch | default('') | string }}",
            "ids": "{{ event.payload.ids | default('') }}",
            "path": "{{ event.payload.path | default('') | string }}",
        },
    )
    night, suites = Cron("30 2 * * *", timezone="UTC", slug="nightly"), {"folder": folder}
    serve(
        nightly.nightly.to_deployment("nightly", schedule=night, parameters=suites, concurrency_limit=one, **common),
        after_ingest.after_ingest.to_deployment("after-ingest", triggers=[trigger], concurrency_limit=one, **common),
        pull_request.pull_request.to_deployment("pull-request", **common),
        promote.promote.to_deployment("promote", concurrency_limit=one, **common),
        pause_on_shutdown=False,
    )
