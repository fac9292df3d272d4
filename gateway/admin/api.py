"""The operator's HTTP API. Every route reads on the loop's own thread and answers at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Query, Request, Response
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from core.broker import Broker
from core.metrics import DoorMetrics
from gateway.admin.explain import QuestionError, explain_exchange, explain_topic
from gateway.admin.metrics import GatewayCollector
from gateway.admin.schemas import DoorOverview, ExchangeExplanation, Explanation, Health, Overview, Readiness
from gateway.amqp.door import AmqpDoor
from gateway.amqp.queues import VirtualHost
from gateway.door import Door
from gateway.net.descriptors import Capacity
from gateway.version import VERSION


class AdminView:
    """What the API may look at."""

    def __init__(
        self,
        broker: Broker,
        doors: Mapping[str, Door],
        capacity: Capacity,
        *,
        is_ready: Callable[[], bool],
        uptime_ms: Callable[[], int],
        certificates: Callable[[], Iterable[tuple[str, str, int]]] = tuple,
    ) -> None:
        self.broker = broker
        self.doors = doors
        self.capacity = capacity
        self.is_ready = is_ready
        self.uptime_ms = uptime_ms
        self.registry = CollectorRegistry()
        self.registry.register(GatewayCollector(broker, capacity, certificates))

    @property
    def vhost(self) -> VirtualHost:
        """The exchanges and queues of AMQP."""
        door = self.doors[AmqpDoor.name]
        assert isinstance(door, AmqpDoor)
        return door.vhost

    @property
    def disk(self) -> Literal["ok", "low"]:
        """Whether there is room for what publishers bring."""
        return "low" if self.broker.room.is_low else "ok"


async def _find_view(request: Request) -> AdminView:
    view = request.app.state.view
    assert isinstance(view, AdminView)
    return view


# The routes know no gateway: FastAPI keeps for good what each function of a route has in its closure.
View = Annotated[AdminView, Depends(_find_view)]
ROUTES = APIRouter()


def make_api(view: AdminView) -> FastAPI:
    """Return the application that serves `view`."""
    api = FastAPI(
        title="LMQ Gateway", version=VERSION, docs_url="/api/docs", openapi_url="/api/openapi.json", redoc_url=None
    )
    api.state.view = view
    api.include_router(ROUTES)
    return api


@ROUTES.get("/healthz")
async def healthz() -> Health:
    """The process lives and its loop turns."""
    return Health(status="ok")


@ROUTES.get("/readyz")
async def readyz(view: View, response: Response) -> Readiness:
    """All doors are open and work is taken; 503 before, while stopping and after a failed sync.

    Also 200 while the disk is low on room: consumers have to come in, for they make room.
    """
    is_ready = view.is_ready()
    if not is_ready:
        response.status_code = 503
    return Readiness(status="ready" if is_ready else "not ready", disk=view.disk)


@ROUTES.get("/metrics")
async def metrics(view: View) -> Response:
    """All counters in Prometheus's text form."""
    return Response(generate_latest(view.registry), media_type=CONTENT_TYPE_LATEST)


@ROUTES.get("/api/overview")
async def overview(view: View) -> Overview:
    """The whole gateway on one page."""
    return describe_gateway(view)


@ROUTES.get("/api/explain", response_model=Explanation | ExchangeExplanation)
async def explain(
    view: View,
    topic: Annotated[str | None, Query(min_length=1, max_length=65_535)] = None,
    exchange: Annotated[str | None, Query(max_length=255)] = None,
    routing_key: Annotated[str, Query(max_length=255)] = "",
) -> Response:
    """The light queues that a publish to `topic`, or to `exchange` with `routing_key`, would reach now.

    They are given with their filters, bindings and readers. 400: the question has no answer, and why.
    """
    if (topic is None) == (exchange is None):
        raise HTTPException(400, "ask for a topic, or for an exchange and a routing key")
    try:
        if topic is not None:
            found = await explain_topic(view.broker, topic)
        else:
            found = await explain_exchange(view.broker, view.vhost, exchange or "", routing_key)
    except QuestionError as error:
        raise HTTPException(400, str(error)) from error
    return Response(found.model_dump_json(), media_type="application/json")


def describe_gateway(view: AdminView) -> Overview:
    """Return the counters of the whole gateway and of each door."""
    figures = view.broker.figures()
    doors = {name: _describe_door(door) for name, door in sorted(view.broker.metrics.doors.items())}
    return Overview(
        version=VERSION,
        is_ready=view.is_ready(),
        uptime_ms=view.uptime_ms(),
        messages_stored=figures.messages_stored,
        dispatches=figures.dispatches,
        light_queues=figures.queues,
        log_bytes=figures.log_bytes,
        disk_free_bytes=view.broker.room.free_bytes,
        disk=view.disk,
        connections=sum(door.connections for door in doors.values()),
        doors=doors,
    )


def _describe_door(door: DoorMetrics) -> DoorOverview:
    return DoorOverview(**{name: getattr(door, name) for name in DoorOverview.model_fields})
