"""What clients publish, by the batch, and their wills."""

from __future__ import annotations

import logging
from functools import partial

from core.broker import Broker
from core.cache_budget import Cache
from core.errors import LmqError
from core.flows import Flows
from core.message import FLAG_BARE, FLAG_EXPIRES, FLAG_MARK, FLAG_QOS_MASK, FLAG_RETAIN, PublishBatch, Route
from core.metrics import DoorMetrics
from core.properties import encode_origin
from gateway.auth.permissions import Permissions
from gateway.logs import said
from gateway.mqtt.columns import RunColumns, encode_acks, encode_id_packets
from gateway.mqtt.delayed import Delayed
from gateway.mqtt.errors import MalformedPacketError
from gateway.mqtt.events import PublishRun
from gateway.mqtt.exact import ExactJournal
from gateway.mqtt.exact_log import tag_exact
from gateway.mqtt.packets import LEVEL_5, Will
from gateway.mqtt.properties import Property, encode_properties, read_varint
from gateway.mqtt.publish_properties import PublishProperties, extra_bytes_max
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.rewriting import Rewriting
from gateway.mqtt.session import Session
from gateway.mqtt.session_rows import StoredWill
from gateway.mqtt.topics import DELAYED_PREFIX, check_topic, is_for_clients
from gateway.net.protocol import Transport

LOGGER = logging.getLogger(__name__)

PROTOCOL = b"mqtt"
_LEVEL_5 = LEVEL_5
_EXACT = 2
_DELAYED_PREFIX = DELAYED_PREFIX
_QOS_MASK = FLAG_QOS_MASK
_PUBCOMP_FIRST = 0x70
_QUOTA_EXCEEDED = int(ReasonCode.QUOTA_EXCEEDED)
_NOT_FOUND = int(ReasonCode.PACKET_IDENTIFIER_NOT_FOUND)
_NOT_AUTHORIZED = int(ReasonCode.NOT_AUTHORIZED)
_UNHEARD = int(ReasonCode.NO_MATCHING_SUBSCRIBERS)


class Publishing:
    """The way of messages from runs into the broker."""

    def __init__(self, broker: Broker, exact: ExactJournal, metrics: DoorMetrics) -> None:
        self.rewriting = Rewriting((), broker.caches)
        self.retained_count_max = 0  # topics that may have a retained message, 0 for any number
        self.retained_body_bytes_max = 0  # 0 for any
        self.delayed = Delayed(broker)
        self._is_delaying = False  # the run in hand has messages for later
        self._broker = broker
        self._exact = exact
        self._metrics = metrics
        self._checked = Cache(broker.caches, "checked_topics", _measure)  # they need no second check
        self._last_topic: bytes | None = None  # of the message before; devices tend to stay with one
        self._last_route: Route
        self._last_generation = -1  # of the bindings that it followed from
        self._will_batch = PublishBatch(1)
        self._flows: Flows = broker.flows

    def publish_run(  # noqa: PLR0917 - a C function, which takes no keywords
        self,
        run: PublishRun,
        origin: bytes,
        transport: Transport,
        session: Session,
        may: Permissions,
        now_ms: int,
    ) -> bytes:
        """Publish a run; return the PUBACKs and PUBRECs that are due when it is durable.

        A message that the client may not publish is acknowledged and counted, MQTT-3.3.5-2, and its topic is in
        `run.denied`. One at QoS 2 that was taken before is acknowledged again. Where all of it would be too much work,
        or the transport's share of the turn is over, the batch is cut: the rest was not published.

        Raises:
            MalformedPacketError: A topic is none; the messages before it are published, the others are not.
            DiskFullError, MessageTooLargeError, StoreClosedError: The rest of the batch was not taken.
        """
        columns = run.columns
        batch = columns.batch
        fault = self._route(run, may, transport, session, now_ms)
        if self._is_delaying:
            self._is_delaying = False
            self.delayed.mark(batch)
        step = batch.find_step()
        if step < batch.count:
            _cut_batch(columns, step)
            fault = None
        batch.origin = origin
        batch.born_host = transport.peer_host
        for i in range(batch.count):
            columns.codes[i] = 0
        if session.level == _LEVEL_5:
            if run.denied:
                _note_codes(columns)
            _note_unheard(columns, self._broker.parent_topic)
        if batch.retained_count and (self.retained_count_max or self.retained_body_bytes_max):
            self._refuse_retained(columns, session)
        if columns.exact_count:
            self._publish_exact(batch, session, now_ms)
        else:
            self._broker.publish_batch(batch, now_ms)
        metrics = self._metrics
        metrics.messages_in += batch.count
        metrics.bytes_in += columns.body_bytes
        self._flows.add_topics(batch)
        if fault is not None:
            raise fault
        return encode_acks(columns, batch.count)

    @staticmethod
    def cut(columns: RunColumns, count: int) -> None:
        """Leave all but the first `count` messages of a run for later."""
        _cut_batch(columns, count)

    def find_destination(self, topic: bytes, session: Session) -> bytes:
        """Return the topic that a message to `topic` is for in the end; the same where that is malformed."""
        if topic.startswith(_DELAYED_PREFIX):
            try:
                _, topic = self.delayed.split(topic)
            except MalformedPacketError:
                return topic
        if self.rewriting.is_for_publish:
            topic = self.rewriting.published(topic, session.client_id, session.owner or b"")
        return topic

    def refuse_run(self, run: PublishRun, session: Session) -> bytes:
        """Take none of a run, because the room on the disk is low; return what says so."""
        columns = run.columns
        batch = columns.batch
        taken = session.taken
        for i in range(batch.count):
            columns.codes[i] = 0 if taken is not None and batch.tag[i] in taken else _QUOTA_EXCEEDED
        self._metrics.refuse("quota_exceeded", batch.count)
        return encode_acks(columns, batch.count)

    def _refuse_retained(self, columns: RunColumns, session: Session) -> None:
        """Take out the retained messages that would be too many or too long; their senders are told."""
        batch = columns.batch
        retained = self._broker.retained
        fresh: set[bytes] = set()
        nowhere = len(batch.routes)
        for i in range(batch.count):
            length = batch.body_end[i] - batch.body_start[i]
            if not batch.flag[i] & FLAG_RETAIN or not length or batch.routes[batch.route_index[i]] is None:
                continue
            topic = batch.topics[batch.route_index[i]]
            is_new = topic not in fresh and retained.get(topic) is None
            is_over = 0 < self.retained_count_max <= len(retained) + len(fresh) and is_new
            if is_over or 0 < self.retained_body_bytes_max < length:
                if len(batch.routes) == nowhere:
                    batch.routes.append(None)
                    batch.topics.append(b"")
                batch.route_index[i] = nowhere
                columns.codes[i] = _QUOTA_EXCEEDED if session.level == _LEVEL_5 else 0
                self._metrics.refuse("retained_quota_exceeded")
            elif is_new:
                fresh.add(topic)

    def release_run(self, columns: RunColumns, session: Session) -> bytes:
        """Take a run of PUBREL: their packet identifiers are free again; return the PUBCOMPs."""
        taken = session.taken or set()
        released: list[int] = []
        for i in range(columns.ack_count):
            packet_id = columns.packet_ids[i]
            if packet_id in taken:
                released.append(packet_id)
                columns.codes[i] = 0
            else:
                columns.codes[i] = _NOT_FOUND if session.level == _LEVEL_5 else 0
        if released:
            self._exact.note_released(session, released)
        return encode_id_packets(columns, _PUBCOMP_FIRST)

    def _publish_exact(self, batch: PublishBatch, session: Session, now_ms: int) -> None:
        """Publish a batch with messages at QoS 2: those that are new are noted before they are appended."""
        taken = session.taken
        fresh: list[int] = []
        seen: set[int] = set()
        rows: list[int] = []
        nowhere = len(batch.routes)
        for i in range(batch.count):
            if batch.flag[i] & _QOS_MASK != _EXACT or batch.routes[batch.route_index[i]] is None:
                continue
            packet_id = batch.tag[i]
            if packet_id in seen or (taken is not None and packet_id in taken):
                if len(batch.routes) == nowhere:
                    batch.routes.append(None)
                    batch.topics.append(b"")
                batch.route_index[i] = nowhere
            else:
                seen.add(packet_id)
                fresh.append(packet_id)
                rows.append(i)
        noted = self._exact.note_taken(session, fresh, self._broker.end_place) if fresh else (0, 0)
        if session.is_persistent:
            for i in rows:
                batch.sys_flag[i] = tag_exact(batch.tag[i])
        try:
            self._broker.publish_batch(batch, now_ms)
            if fresh:
                self._broker.when_stored(batch.ticket, partial(self._note_outcome, session, fresh, noted))
        finally:
            for i in rows if session.is_persistent else ():
                batch.sys_flag[i] = 0
            if batch.appended < batch.count:
                self._exact.note_stored(noted)
                self._exact.note_released(
                    session, [packet_id for packet_id, i in zip(fresh, rows, strict=True) if i >= batch.appended]
                )

    def _note_outcome(
        self, session: Session, packet_ids: list[int], noted: tuple[int, int], error: LmqError | None
    ) -> None:
        """Let messages that were taken and lost be sent again."""
        self._exact.note_stored(noted)
        if error is not None:
            self._exact.note_released(session, packet_ids)

    def _route(
        self, run: PublishRun, may: Permissions, transport: Transport, session: Session, now_ms: int
    ) -> MalformedPacketError | None:
        """Give each distinct topic its route, and cut the batch before the first that gets none.

        That is a malformed one, of which the error is returned, or any if others are to have their turn.
        """
        batch = run.columns.batch
        routes = batch.routes
        router = self._broker.router
        made_count = router.made_count
        rewrites = self.rewriting.is_for_publish
        for k, sent_to in enumerate(batch.topics):
            topic = sent_to
            later_s = -1
            if router.made_count != made_count:
                if transport.is_share_over():
                    _cut_batch(run.columns, _first_of(batch, len(routes)))
                    return None
                made_count = router.made_count
            self._checked.hits.count += 1
            if topic is not self._last_topic and (
                topic not in self._checked.young or topic.startswith(_DELAYED_PREFIX)
            ):
                try:
                    self._check(topic)
                    if topic.startswith(_DELAYED_PREFIX):
                        later_s, topic = self.delayed.split(topic)
                        batch.topics[k] = topic
                except MalformedPacketError as error:
                    _cut_batch(run.columns, _first_of(batch, len(routes)))
                    return error
            if rewrites:
                topic = batch.topics[k] = self.rewriting.published(topic, session.client_id, session.owner or b"")
            if may.may_publish(topic) and (not topic.startswith(b"$") or is_for_clients(topic)):
                routes.append(self._route_to(topic) if later_s < 0 else self._delay(topic, later_s, now_ms))
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

    def _delay(self, topic: bytes, later_s: int, now_ms: int) -> Route:
        self._is_delaying = True
        return self.delayed.route(topic, later_s, now_ms)

    def _note_denied(self, run: PublishRun, topic: bytes) -> None:
        if run.denied is None:
            run.denied = []
        run.denied.append(topic)
        self._metrics.refuse("publish_not_authorized")

    def _check(self, topic: bytes) -> None:
        self._checked.hits.count -= 1  # counted as found before it was looked for
        if self._checked.get(topic) is None:
            check_topic(topic)
            self._checked.put(topic, True)  # noqa: FBT003 - the value says nothing

    @staticmethod
    def _add_properties(batch: PublishBatch, will: Will) -> None:
        block = _published_properties(will)
        reader = PublishProperties()
        if not block or reader.read(block, 0, len(block)):  # too large ones are left out
            batch.flag[0] |= FLAG_BARE
            batch.extra_start[0] = batch.extra_end[0] = 0
            return
        extra = bytearray(extra_bytes_max(len(block)))
        batch.extra_start[0] = 0
        batch.extra_end[0] = reader.write_extra(block, len(block), extra, 0)
        batch.extra = extra
        batch.flag[0] |= FLAG_EXPIRES if reader.expiry_s >= 0 else 0

    def publish_will(self, stored: StoredWill, now_ms: int) -> None:
        """Publish a will that its client may publish."""
        will = stored.will
        batch = self._will_batch
        batch.clear()
        batch.count = 1
        batch.buf = will.body
        batch.origin = encode_origin(PROTOCOL, stored.client_id, stored.user)
        batch.born_host = stored.host
        later_s, topic = self.delayed.split_kept(will.topic)
        batch.topics.append(topic)
        batch.routes.append(
            self._broker.route_topic(topic) if later_s < 0 else self.delayed.route(topic, later_s, now_ms)
        )
        batch.route_index[0] = 0
        batch.body_start[0] = 0
        batch.body_end[0] = len(will.body)
        batch.flag[0] = FLAG_MARK | will.qos | (FLAG_RETAIN if will.is_retained else 0)
        self._add_properties(batch, will)
        batch.retained_count = int(will.is_retained)
        if later_s >= 0:
            self.delayed.mark(batch)
        self._flows.add_topics(batch)
        self._broker.publish_batch(batch, now_ms)
        self._broker.when_stored(batch.ticket, partial(self._note_will, stored.client_id))
        batch.clear()

    def _note_will(self, client_id: bytes, error: LmqError | None) -> None:
        if error is not None:
            LOGGER.warning("will not stored client=%s cause=%s", said(client_id), error)
            self._metrics.drop("will")


def _published_properties(will: Will) -> bytes:
    """Return the properties that a will is published with, as they stand in a PUBLISH behind their length."""
    encoded = encode_properties([item for item in will.properties.items() if item[0] != Property.WILL_DELAY])
    return encoded[read_varint(encoded, 0)[1] :]


def _note_codes(columns: RunColumns) -> None:
    """Let those that were denied be answered so."""
    batch = columns.batch
    for i in range(batch.count):
        if batch.routes[batch.route_index[i]] is None:
            columns.codes[i] = _NOT_AUTHORIZED


def _note_unheard(columns: RunColumns, parent_topic: bytes) -> None:
    """Let those be answered so that no light queue gets: nobody subscribes to their topics, and no queue is bound.

    What waits for its time has a topic of its own in the log: its subscribers are not known yet.
    """
    batch = columns.batch
    is_unheard = False
    for k in range(len(batch.routes)):
        route = batch.routes[k]
        if route is not None and not route.dispatch.count and route.topic == parent_topic:
            is_unheard = True
    if is_unheard:
        for i in range(batch.count):
            route = batch.routes[batch.route_index[i]]
            if route is not None and not route.dispatch.count and route.topic == parent_topic:
                columns.codes[i] = _UNHEARD


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
