"""The operator's HTTP API. Every route reads on the loop's own thread and answers at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from fastapi import FastAPI, Query, Response
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from core.broker import Broker, ExplainedQueue as ReachedQueue
from core.lmq.queue_name import is_amqp
from core.lmq.topic_space import binding_key_from_filter
from core.metrics import DoorMetrics
from gateway.admin.metrics import GatewayCollector
from gateway.admin.schemas import DoorOverview, ExplainedQueue, Explanation, Health, Overview, Readiness
from gateway.amqp.exchanges import AMQ_TOPIC
from gateway.version import VERSION


class AdminView:
    """What the API may look at."""

    def __init__(self, broker: Broker, *, is_ready: Callable[[], bool], uptime_ms: Callable[[], int]) -> None:
        self.broker = broker
        self.is_ready = is_ready
        self.uptime_ms = uptime_ms

    @property
    def disk(self) -> Literal["ok", "low"]:
        """Whether there is room for what publishers bring."""
        return "low" if self.broker.room.is_low else "ok"


def make_api(view: AdminView) -> FastAPI:
    """Return the application that serves `view`."""
    api = FastAPI(
        title="LMQ Gateway", version=VERSION, docs_url="/api/docs", openapi_url="/api/openapi.json", redoc_url=None
    )
    _add_health(api, view)
    _add_metrics(api, view)
    _add_questions(api, view)
    return api


def _add_health(api: FastAPI, view: AdminView) -> None:
    @api.get("/healthz")
    async def healthz() -> Health:
        """The process lives and its loop turns."""
        return Health(status="ok")

    @api.get("/readyz")
    async def readyz(response: Response) -> Readiness:
        """All doors are open and work is taken; 503 before, while stopping and after a failed sync.

        Also 200 while the disk is low on room: consumers have to come in, for they make room.
        """
        is_ready = view.is_ready()
        if not is_ready:
            response.status_code = 503
        return Readiness(status="ready" if is_ready else "not ready", disk=view.disk)


def _add_metrics(api: FastAPI, view: AdminView) -> None:
    registry = CollectorRegistry()
    registry.register(GatewayCollector(view.broker))

    @api.get("/metrics")
    async def metrics() -> Response:
        """All counters in Prometheus's text form."""
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)


def _add_questions(api: FastAPI, view: AdminView) -> None:
    @api.get("/api/overview")
    async def overview() -> Overview:
        """The whole gateway on one page."""
        return describe_gateway(view)

    @api.get("/api/explain")
    async def explain(topic: str = Query(min_length=1, max_length=65_535)) -> Explanation:
        """The light queues that a publish to `topic` would reach now, with their filters and readers."""
        return explain_topic(view.broker, topic)


def describe_gateway(view: AdminView) -> Overview:
    """Return the counters of the whole gateway and of each door."""
    store = view.broker.store
    doors = {name: _describe_door(door) for name, door in sorted(view.broker.metrics.doors.items())}
    return Overview(
        version=VERSION,
        is_ready=view.is_ready(),
        uptime_ms=view.uptime_ms(),
        messages_stored=store.message_count,
        dispatches=store.dispatch_count,
        light_queues=store.queue_count(),
        log_bytes=store.log_bytes(),
        disk_free_bytes=view.broker.room.free_bytes,
        disk=view.disk,
        connections=sum(door.connections for door in doors.values()),
        doors=doors,
    )


def _describe_door(door: DoorMetrics) -> DoorOverview:
    return DoorOverview(**{name: getattr(door, name) for name in DoorOverview.model_fields})


def explain_topic(broker: Broker, topic: str) -> Explanation:
    """Return where a publish to `topic` would go."""
    queues = [_explain_queue(queue) for queue in broker.explain(topic.encode())]
    return Explanation(topic=topic, parent_topic=_text(broker.parent_topic), queues=queues)


def _explain_queue(queue: ReachedQueue) -> ExplainedQueue:
    bindings = queue.filters if is_amqp(queue.name) else ()
    return ExplainedQueue(
        name=_text(queue.name),
        filters=[_text(topic_filter) for topic_filter in queue.filters],
        bindings=[f"{AMQ_TOPIC} {_text(binding_key_from_filter(topic_filter))}" for topic_filter in bindings],
        subscriptions=sum(queue.filters.values()),
        readers=queue.readers,
        max_offset=queue.max_offset,
    )


def _text(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")
