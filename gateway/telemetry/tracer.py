"""Spans of messages that are traced: publish, route, deliver from each queue, and acknowledged there.

| span | begins | ends |
|---|---|---|
| publish | its batch is given to the log | it is written |
| route, of publish | likewise, with the light queues that it goes to | likewise |
| deliver, of publish, one for each queue | it is written | it is read for a client: the time that it waited |
| ack, of deliver | it is delivered | it is acknowledged: the time that the consumer took |

Source: docs/operations.md, "Traces".
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable

from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Tracer as OtelTracer, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from core.lmq.queue_name import LIGHT_PREFIX, MQTT
from core.message import PublishBatch
from core.properties import CLIENT, EXCHANGE, PROTOCOL, ROUTING_KEY, decode_properties
from gateway.telemetry.choosing import PARENT, STATE, Choice

FOLLOWED_MAX = 4_096  # messages that are followed until they are acknowledged: some megabytes
QUEUES_MAX = 32  # of one message that are followed; chosen: a trace of more nobody reads
_NAMES_TOLD = 10  # of a message's queues; their count is told beside them
_MQTT_PREFIX = LIGHT_PREFIX + MQTT + b"%"
_PROPAGATOR = TraceContextTextMapPropagator()


class Stop:
    """A message in one queue: where its deliver span goes, and when what happened to it."""

    __slots__ = ("context", "delivered", "delivered_ns", "name", "written_ns")

    def __init__(self, name: bytes, context: Context, written_ns: int) -> None:
        self.name = name
        self.context = context  # of its publish
        self.written_ns = written_ns
        self.delivered: Span | None = None
        self.delivered_ns = 0


Place = tuple[bytes, int]  # a queue, and an offset in it


class MessageTracer:
    """Makes the spans.

    Args:
        spans: Makes them in OpenTelemetry's library.
        choice: Says which messages are traced.
        now_ns: The moment, in nanoseconds since 1970.
    """

    def __init__(self, spans: OtelTracer, choice: Choice, now_ns: Callable[[], int] = time.time_ns) -> None:
        self._spans = spans
        self._choice = choice
        self._now_ns = now_ns
        self._stops: OrderedDict[Place, Stop] = OrderedDict()
        self._read: dict[Place, Stop] = {}  # those of queues that are read, not shared

    @property
    def is_following(self) -> bool:
        """Whether any message is on its way that is traced."""
        return bool(self._stops)

    def choose(self, batch: PublishBatch) -> tuple[dict[int, tuple[str, str]], int]:
        """Return what of a batch, which is about to be written, is traced, and the moment."""
        chosen = self._choice.choose(batch)
        return chosen, self._now_ns() if chosen else 0

    def note_written(
        self,
        batch: PublishBatch,
        chosen: dict[int, tuple[str, str]],
        began_ns: int,
        find_places: Callable[[int], list[Place]],
    ) -> None:
        """Make the spans of what was written, and follow it; `find_places` says where a message is in its queues."""
        now_ns = self._now_ns()
        for i, (parent, state) in chosen.items():
            route = batch.routes[batch.route_index[i]]
            if i >= batch.appended or route is None:
                continue
            names = route.dispatch.names
            about = _describe(batch, i)
            context = _PROPAGATOR.extract({PARENT.decode(): parent, STATE.decode(): state}) if parent else Context()
            span = self._spans.start_span(
                f"publish {about['messaging.destination.name']}",
                context,
                SpanKind.SERVER,
                {**about, "messaging.operation.name": "publish", "lmq.position": batch.physical_offset[i]},
                start_time=began_ns,
            )
            inside = set_span_in_context(span, Context())
            told: dict[str, int | list[str]] = {
                "lmq.queues": len(names),
                "lmq.queue_names": [_text(name) for name in names[:_NAMES_TOLD]],
            }
            self._spans.start_span("route", inside, SpanKind.INTERNAL, told, start_time=began_ns).end(now_ns)
            span.end(now_ns)
            for place in find_places(i)[:QUEUES_MAX]:
                self._follow(place, Stop(place[0], inside, now_ns))

    def _follow(self, place: Place, stop: Stop) -> None:
        self._stops[place] = stop
        if place[0].startswith(_MQTT_PREFIX) or not place[0].startswith(LIGHT_PREFIX):
            self._read[place] = stop
        while len(self._stops) > FOLLOWED_MAX:
            gone, _ = self._stops.popitem(last=False)
            self._read.pop(gone, None)

    def is_read(self, queue: bytes) -> bool:
        """Return whether reading a queue is delivering: of what consumers share, taking is."""
        return queue.startswith(_MQTT_PREFIX) or not queue.startswith(LIGHT_PREFIX)

    def note_read(self, queue: bytes, offsets: Iterable[int]) -> None:
        """Note messages that were read for clients."""
        if self._read:
            for place in {(queue, offset) for offset in offsets} & self._read.keys():
                self._deliver(self._read.pop(place))

    def note_taken(self, queue: bytes, first: int, count: int) -> None:
        """Note that consumers were given messages of a queue that they share, once more perhaps."""
        for stop in self._find(queue, first, count):
            if stop.delivered is None:
                self._deliver(stop)

    def note_done(self, queue: bytes, first: int, count: int) -> None:
        """Note that messages of a queue were acknowledged."""
        for stop in self._find(queue, first, count):
            if stop.delivered is not None:
                inside = set_span_in_context(stop.delivered, Context())
                about = {"messaging.operation.name": "ack", "messaging.destination.subscription.name": _text(stop.name)}
                name = f"ack {_text(stop.name)}"
                span = self._spans.start_span(name, inside, SpanKind.SERVER, about, start_time=stop.delivered_ns)
                span.end(self._now_ns())
        for offset in self._offsets(queue, first, count):
            self._stops.pop((queue, offset), None)

    def _offsets(self, queue: bytes, first: int, count: int) -> list[int]:
        if count <= len(self._stops):
            return [offset for offset in range(first, first + count) if (queue, offset) in self._stops]
        return [offset for name, offset in self._stops if name == queue and first <= offset < first + count]

    def _find(self, queue: bytes, first: int, count: int) -> list[Stop]:
        return [self._stops[queue, offset] for offset in self._offsets(queue, first, count)]

    def _deliver(self, stop: Stop) -> None:
        name = _text(stop.name)
        about = {"messaging.operation.name": "deliver", "messaging.destination.subscription.name": name}
        span = self._spans.start_span(
            f"deliver {name}", stop.context, SpanKind.PRODUCER, about, start_time=stop.written_ns
        )
        stop.delivered, stop.delivered_ns = span, self._now_ns()
        span.end(stop.delivered_ns)


def _describe(batch: PublishBatch, i: int) -> dict[str, str | int]:
    """Return what the attributes of a span say of message `i`."""
    index = batch.route_index[i]
    route = batch.routes[index]
    assert route is not None
    said = decode_properties(bytes(batch.origin)) | decode_properties(route.prefix)
    where = f"{_text(said.get(EXCHANGE, b''))}:{_text(said.get(ROUTING_KEY, b''))}"
    about: dict[str, str | int] = {
        "messaging.system": "lmq",
        "messaging.destination.name": where if EXCHANGE in said else _text(batch.topics[index] or route.topic),
        "messaging.message.body.size": batch.body_end[i] - batch.body_start[i],
    }
    if PROTOCOL in said:
        about["lmq.door"] = _text(said[PROTOCOL])
    if CLIENT in said:
        about["messaging.client.id"] = _text(said[CLIENT])
    return about


def _text(name: bytes) -> str:
    return name.decode(errors="replace")
