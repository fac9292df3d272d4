"""What clients publish, by the batch, and their wills."""

from __future__ import annotations

from core.broker import Broker
from core.cache_budget import Cache
from core.message import FLAG_MARK, FLAG_RETAIN, PublishBatch, Route
from core.metrics import DoorMetrics
from core.properties import encode_origin
from gateway.auth.permissions import Permissions
from gateway.mqtt.codec import RunColumns, encode_pubacks
from gateway.mqtt.errors import MalformedPacketError
from gateway.mqtt.events import PublishRun
from gateway.mqtt.session_table import StoredWill
from gateway.mqtt.topics import check_topic
from gateway.net.protocol import Transport

PROTOCOL = b"mqtt"


class Publishing:
    """The way of messages from runs into the broker."""

    def __init__(self, broker: Broker, metrics: DoorMetrics) -> None:
        self._broker = broker
        self._metrics = metrics
        self._checked = Cache(broker.caches, "checked_topics", _measure)  # they need no second check
        self._last_topic: bytes | None = None  # of the message before; devices tend to stay with one
        self._last_route: Route
        self._last_generation = -1  # of the bindings that it followed from
        self._will_batch = PublishBatch(1)

    def publish_run(self, run: PublishRun, origin: bytes, transport: Transport, may: Permissions, now_ms: int) -> bytes:
        """Publish a run; return the PUBACKs that are due when it is durable.

        A message that the client may not publish is acknowledged and counted, MQTT-3.3.5-2, and its topic is in
        `run.denied`. Where all of it would be too much work, or the transport's share of the turn is
        over, the batch is cut: the rest was not published.

        Raises:
            MalformedPacketError: A topic is none; the messages before it are published, the others are not.
            DiskFullError, MessageTooLargeError, StoreClosedError: The rest of the batch was not taken.
        """
        columns = run.columns
        batch = columns.batch
        fault = self._route(run, may, transport)
        step = batch.find_step()
        if step < batch.count:
            _cut_batch(columns, step)
            fault = None
        batch.origin = origin
        batch.born_host = transport.peer_host
        self._broker.publish_batch(batch, now_ms)
        metrics = self._metrics
        metrics.messages_in += batch.count
        metrics.bytes_in += columns.body_bytes
        if fault is not None:
            raise fault
        return encode_pubacks(columns, batch.count)

    def _route(self, run: PublishRun, may: Permissions, transport: Transport) -> MalformedPacketError | None:
        """Give each distinct topic its route, and cut the batch before the first that gets none.

        That is a malformed one, of which the error is returned, or any if others are to have their turn.
        """
        batch = run.columns.batch
        routes = batch.routes
        router = self._broker.router
        made_count = router.made_count
        for topic in batch.topics:
            if router.made_count != made_count:
                if transport.is_share_over():
                    _cut_batch(run.columns, _first_of(batch, len(routes)))
                    return None
                made_count = router.made_count
            if topic is not self._last_topic and topic not in self._checked.young:
                try:
                    self._check(topic)
                except MalformedPacketError as error:
                    _cut_batch(run.columns, _first_of(batch, len(routes)))
                    return error
            if may.may_publish(topic):
                routes.append(self._route_to(topic))
            else:
                routes.append(None)
                self._note_denied(run, topic)
        return None

    def _route_to(self, topic: bytes) -> Route:
        generation = self._broker.router.generation
        if topic is not self._last_topic or generation != self._last_generation:
            self._last_route = self._broker.route_topic(topic)
            self._last_topic = topic
            self._last_generation = generation
        return self._last_route

    def _note_denied(self, run: PublishRun, topic: bytes) -> None:
        if run.denied is None:
            run.denied = []
        run.denied.append(topic)
        self._metrics.refuse("publish_not_authorized")

    def _check(self, topic: bytes) -> None:
        if self._checked.get(topic) is None:
            check_topic(topic)
            self._checked.put(topic, True)  # noqa: FBT003 - the value says nothing

    def publish_will(self, stored: StoredWill, now_ms: int) -> None:
        """Publish a will that its client may publish."""
        will = stored.will
        batch = self._will_batch
        batch.clear()
        batch.count = 1
        batch.buf = will.body
        batch.origin = encode_origin(PROTOCOL, stored.client_id, stored.user)
        batch.born_host = stored.host
        batch.topics.append(will.topic)
        batch.routes.append(self._broker.route_topic(will.topic))
        batch.route_index[0] = 0
        batch.body_start[0] = 0
        batch.body_end[0] = len(will.body)
        batch.flag[0] = FLAG_MARK | will.qos | (FLAG_RETAIN if will.is_retained else 0)
        batch.retained_count = int(will.is_retained)
        self._broker.publish_batch(batch, now_ms)
        batch.clear()


def _measure(value: bool, generation: int) -> int:  # noqa: ARG001, FBT001 - the interface says so
    return 0


def _first_of(batch: PublishBatch, topic_index: int) -> int:
    """Return the first message of a topic; the topics before it come before it."""
    count = 0
    while count < batch.count and batch.route_index[count] < topic_index:
        count += 1
    return count


def _cut_batch(columns: RunColumns, count: int) -> None:
    """End the batch after its first `count` messages."""
    batch = columns.batch
    retained_count = body_bytes = 0
    for i in range(count):
        retained_count += bool(batch.flag[i] & FLAG_RETAIN)
        body_bytes += batch.body_end[i] - batch.body_start[i]
    batch.count = count
    batch.retained_count = retained_count
    columns.body_bytes = body_bytes
