"""The operator's HTTP API: joins the routes of all subjects, and has those of health and metrics."""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import FastAPI, Header, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse
from prometheus_client import CollectorRegistry
from starlette.exceptions import HTTPException as AnyHTTPException

from gateway.admin.changes_told import ChangesTold
from gateway.admin.console import CONSOLE
from gateway.admin.explanations import EXPLANATIONS
from gateway.admin.exposition import expose
from gateway.admin.lineage import LINEAGE
from gateway.admin.live import LiveFeed
from gateway.admin.login import Looker
from gateway.admin.management.failures import answer_failure, answer_wrong, not_found
from gateway.admin.management.keeping import keep
from gateway.admin.management.router import MANAGEMENT
from gateway.admin.ours.light_names import find_named
from gateway.admin.ours.router import OURS
from gateway.admin.paths import RequestsAsSent
from gateway.admin.queue_metrics import QueuesCollector
from gateway.admin.routes import Routes, find_methods
from gateway.admin.same_site import SameSite
from gateway.admin.schemas import Health, Readiness
from gateway.admin.shortcut import Shortcut
from gateway.admin.view import AdminView, View
from gateway.amqp.definition_rows import DEFAULT_VHOST
from gateway.amqp.inventory import describe_queue
from gateway.version import VERSION

ROUTES = Routes()
REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"description": "The request is not well formed, or what it asks for cannot be done."},
    401: {"description": "A login is needed, or may not do that."},
    403: {"description": "A page of another site asked for a change."},
    404: {"description": "There is no such thing."},
    413: {"description": "The request is too long."},
    429: {"description": "Logins of this address are refused for a while, after too many wrong ones."},
    503: {"description": "It cannot be done now, or a check has failed."},
}
Accept = Annotated[str, Header(max_length=1_000, include_in_schema=False)]
QUEUES_MAX = 100  # whose metrics are asked for at once; chosen: each is a dozen series of Prometheus


def make_api(view: AdminView, feed: LiveFeed) -> FastAPI:
    """Return the application that serves `view`, and `feed` to pages that stay open."""
    api = FastAPI(
        title="LMQ Gateway",
        version=VERSION,
        docs_url=None,
        responses=REFUSALS,
        openapi_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    api.state.view = view
    api.state.feed = feed
    ROUTES.add_to(api)
    EXPLANATIONS.add_to(api)
    MANAGEMENT.add_to(api)
    OURS.add_to(api)
    CONSOLE.add_to(api)
    LINEAGE.add_to(api)
    api.add_middleware(Shortcut, answer_failure=answer_failure)  # innermost: what is added later goes first
    api.add_middleware(ChangesTold)
    api.add_middleware(RequestsAsSent)
    api.add_middleware(SameSite)
    api.add_exception_handler(AnyHTTPException, _answer_failure)
    api.add_exception_handler(RequestValidationError, answer_wrong)
    return api


async def _answer_failure(request: Request, failure: Exception) -> Response:
    """Answer a failure; that a thing to be deleted is not there, once no killed process would have it again.

    A method that a path has not is answered with all those that it has.
    """
    if isinstance(failure, AnyHTTPException) and failure.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        methods = find_methods(request.app, request.scope["path"])
        failure = AnyHTTPException(failure.status_code, failure.detail, {"Allow": ", ".join(methods)})
    if (
        request.method == "DELETE"
        and isinstance(failure, AnyHTTPException)
        and failure.status_code == HTTPStatus.NOT_FOUND
    ):
        try:
            await keep(request.app.state.view.broker)
        except AnyHTTPException as busy:
            failure = busy
    return await answer_failure(request, failure)


@ROUTES.head("/healthz", include_in_schema=False)
@ROUTES.get("/healthz")
async def healthz() -> Health:
    """The process lives and its loop turns."""
    return Health(status="ok")


@ROUTES.head("/readyz", include_in_schema=False)
@ROUTES.get("/readyz")
async def readyz(view: View, response: Response) -> Readiness:
    """All doors are open and work is taken; 503 before, while stopping and after a failed sync.

    Also 200 while the disk is low on room: consumers have to come in, for they make room.
    """
    is_ready = view.is_ready()
    if not is_ready:
        response.status_code = 503
    return Readiness(status="ready" if is_ready else "not ready", disk=view.disk)


@ROUTES.get("/api/openapi.json", include_in_schema=False)
async def describe(request: Request) -> Response:
    """The description of the API; it is made beside the loop, for it takes a quarter of a second."""
    text = await asyncio.to_thread(lambda: json.dumps(request.app.openapi()))
    return Response(text, media_type="application/json")


@ROUTES.head("/metrics", include_in_schema=False)
@ROUTES.get("/metrics", response_class=PlainTextResponse)
async def metrics(view: View, accept: Accept = "") -> Response:
    """All counters in Prometheus's text form or OpenMetrics, with the deepest and the oldest queues by name."""
    await view.totals.find()
    return _write(view.registry, accept)


def _write(registry: CollectorRegistry, accept: str) -> Response:
    text, kind = expose(registry, accept)
    return Response(text, media_type=kind)


@ROUTES.get("/metrics/detailed", response_class=PlainTextResponse)
async def detailed_metrics(
    view: View,
    looker: Looker,
    queues: Annotated[list[str], Query(alias="queue", min_length=1, max_length=QUEUES_MAX)],
    vhost: Annotated[str, Query(max_length=255)] = DEFAULT_VHOST,
    accept: Accept = "",
) -> Response:
    """Metrics of the queues that are named, in Prometheus's text form; of several, one that is not there has none.

    They are AMQP queues of the virtual host, MQTT filters (`plant/#`) and queues of RocketMQ's topics (`Orders/0`); two
    doors may have one of a name. 401: The virtual host is not shown to the user. 404: None of them is there.
    """
    looker.check_sees(f"vhost '{vhost}'", is_told=looker.may_see_vhost(vhost))
    place = view.vhosts.find(vhost)
    found = [(place, place.find(name)) for name in queues] if place is not None else []
    entries = [describe_queue(view.broker, where, one) for where, one in found if one is not None]
    light = await find_named(view, queues) if looker.sees_all else []
    if not entries and not light:
        raise not_found(f"no queue of these: {', '.join(queues)}; AMQP's are looked for in vhost '{vhost}'")
    registry = CollectorRegistry()
    registry.register(QueuesCollector(entries, light))
    return _write(registry, accept)
