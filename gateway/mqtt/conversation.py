"""What one connection of the MQTT door says and is told once its client was let in."""

from __future__ import annotations

import logging
from functools import partial

from core.errors import LmqError
from core.message import FLAG_QOS_MASK
from core.properties import encode_origin
from core.room import DISK_LOW, MEMORY_LOW
from gateway.events import Kind
from gateway.logs import said
from gateway.mqtt.answers import encode_suback, encode_unsuback
from gateway.mqtt.columns import RunColumns, encode_id_packets, encode_told_acks
from gateway.mqtt.connection import MqttConnection
from gateway.mqtt.errors import PacketTooLargeError, ReceiveMaximumError
from gateway.mqtt.events import AckRun, PublishRun
from gateway.mqtt.leaving import Leaving
from gateway.mqtt.packets import LEVEL_5, PUBREC, PUBREL
from gateway.mqtt.properties import Property, encode_properties
from gateway.mqtt.publishing import PROTOCOL
from gateway.mqtt.reason_codes import SUBSCRIBE_FAILURE, ReasonCode
from gateway.mqtt.services import MqttServices
from gateway.mqtt.session import Session
from gateway.mqtt.subscribing import Answer, Granted, GrantedFilter
from gateway.mqtt.terms import RECEIVE_MAX
from gateway.mqtt.topics import plain_filter
from gateway.net.protocol import Transport
from gateway.pacing import Pacing

LOGGER = logging.getLogger(__name__)

REASON_CHARS_MAX = 200  # chosen: a sentence for a log
_LEVEL_5 = LEVEL_5
_PUBREC = PUBREC
_PUBREL = PUBREL
_PUBREL_FIRST = 0x62
_EXACT = 2
_QOS_MASK = FLAG_QOS_MASK
_RECEIVE_MAX = RECEIVE_MAX
_REFUSED_WORDS = {
    int(code): encode_properties([(Property.REASON, text)])
    for code, text in (
        (ReasonCode.NOT_AUTHORIZED, b"not authorized: no right to publish to this topic"),
        (ReasonCode.QUOTA_EXCEEDED, b"quota exceeded: too many retained messages, or too long a one"),
    )
}
_LOW_WORDS, _LOW_MEMORY_WORDS = [
    {int(ReasonCode.QUOTA_EXCEEDED): encode_properties([(Property.REASON, b"quota exceeded: " + text)])}
    for text in (DISK_LOW.encode(), MEMORY_LOW.encode())
]


class Conversation(Leaving):
    """One connection of the door, without how its packets get here."""

    __slots__ = (
        "_answers",
        "_origin",
        "_pacing",
        "_pending",
        "_recs_due",
        "_tells_why",
    )

    def __init__(self, door: MqttServices, transport: Transport, connection: MqttConnection) -> None:
        super().__init__(door, transport, connection)
        self._origin = b""  # until something is published
        self._answers: list[Answer] = []  # to what was done in this turn
        self._tells_why = False  # reasons in words are wanted also where the connection goes on
        self._pacing: Pacing | None = None  # where there is a limit to what the client may publish
        self._pending = 0  # acknowledgements that are due and not sent
        self._recs_due: set[int] = set()  # packet identifiers of the PUBRECs among them

    def on_writable(self, now_ms: int) -> None:
        """Go on with what waited for the output."""
        del now_ms
        self.transport.resume_reading()
        if self.session is not None:
            self._door.delivery.wake(self.session)

    # While the disk is low on room

    def on_held(self) -> None:
        """Do not wait for what may not come."""
        self._connection.hold()

    def on_released(self, now_ms: int) -> None:
        """Wait for the peer again."""
        self._connection.release(now_ms)

    # The data path

    def _publish(self, run: PublishRun, now_ms: int) -> None:
        door = self._door
        assert self._may is not None
        batch = run.columns.batch
        count = batch.count
        session = self.session
        assert session is not None
        is_5 = session.level == _LEVEL_5
        if is_5:
            self._check_receive_max(run, session)
        if is_5 and door.room.is_low:
            words = _LOW_WORDS if door.room.is_disk_low else _LOW_MEMORY_WORDS
            acks = self._in_words(door.publishing.refuse_run(run, session), run.columns, session, words)
            self._send_later(acks, 0, run.columns, session)
            run.release()
            return
        pacing = self._pacing
        if pacing is not None:
            allowed = pacing.allow(now_ms)
            if allowed < count:
                door.publishing.cut(run.columns, allowed)
        acks = door.publishing.publish_run(
            run, self._origin or self._make_origin(), self.transport, session, self._may, now_ms
        )
        if batch.count < count:
            self._connection.unread(run)
        if run.denied:
            self._note_denied("publish", run.denied)
        if acks:
            acks = self._in_words(acks, run.columns, session, _REFUSED_WORDS)
            self._send_later(acks, batch.ticket, run.columns, session)
        if pacing is not None and pacing.note(batch.count, run.columns.body_bytes, now_ms):
            self._pause()
        run.release()
        if door.room.is_low and not is_5:
            door.held.hold(self)

    def _make_origin(self) -> bytes:
        assert self.session is not None
        assert self.identity is not None
        self._origin = encode_origin(PROTOCOL, self.session.client_id, self.identity.user.encode())
        return self._origin

    def _pause(self) -> None:
        """Read nothing more from a client that publishes too fast, for a while."""
        self.transport.hold_reading()
        self._connection.hold()
        self.transport.deadline_changed()

    def _end_pause(self, pacing: Pacing, now_ms: int) -> None:
        """Read on."""
        pacing.is_paused = False
        if not self._door.held.is_held(self):
            self._connection.release(now_ms)
        self.transport.release_reading()
        self.transport.request_turn()
        self.transport.deadline_changed()

    def _in_words(self, acks: bytes, columns: RunColumns, session: Session, words: dict[int, bytes]) -> bytes:
        """Say also in words why messages of a run are refused, to a client that wants to know."""
        if not columns.failure_count or not self._tells_why:
            return acks
        return encode_told_acks(columns, columns.batch.count, words, session.packet_bytes_max)

    def _send_later(self, acks: bytes, ticket: int, columns: RunColumns, session: Session) -> None:
        """Acknowledge a run when it is stored; at QoS 2, to a durable session, when it is known that it was taken."""
        if not acks:
            return
        count = columns.answer_count
        self._pending += count
        broker = self._door.broker
        if not columns.exact_count:
            broker.when_stored(ticket, partial(self._settle, acks, count))
            return
        batch = columns.batch
        packet_ids = [batch.tag[i] for i in range(batch.count) if batch.flag[i] & _QOS_MASK == _EXACT]
        self._recs_due.update(packet_ids)
        then = partial(self._settle_recs, acks, count, packet_ids)
        if session.is_persistent:
            broker.when_stored(ticket, partial(self._settle, b"", 0))
            broker.when_durable(then)
        else:
            broker.when_stored(ticket, then)

    def _settle_recs(self, acks: bytes, count: int, packet_ids: list[int], error: LmqError | None) -> None:
        self._recs_due.difference_update(packet_ids)
        self._settle(acks, count, error)

    def _complete(self, columns: RunColumns, answer: bytes) -> None:
        """Send PUBCOMPs, none before the PUBREC of its message.

        A durable session's client waits until its packet identifiers are free on the disk too: it may use them again
        then, and a gateway that still had them for taken would take the next message for the one before.
        """
        session = self.session
        assert session is not None
        due = self._recs_due
        if session.is_persistent:
            self._pending += columns.ack_count
            self._door.broker.when_durable(partial(self._settle, answer, columns.ack_count))
            return
        if due:
            for i in range(columns.ack_count):
                if columns.packet_ids[i] in due:
                    self._door.broker.when_stored(0, partial(self._complete_late, answer))  # it calls back in order
                    return
        self.transport.write(answer)

    def _complete_late(self, answer: bytes, error: LmqError | None) -> None:
        if error is None:
            self._send(answer)

    def _settle(self, acks: bytes, count: int, error: LmqError | None) -> None:
        """Acknowledge what was stored; a client whose messages were lost is to send them again, on a new connection."""
        if error is not None:
            self._give_up(error)
        elif acks:
            self._pending = max(self._pending - count, 0)
            self._send(acks)

    def _check_receive_max(self, run: PublishRun, session: Session) -> None:
        """Check that the client has no more unacknowledged messages on their way than its receive maximum.

        Raises:
            ReceiveMaximumError: It has, MQTT-3.3.4-7.
        """
        count = run.columns.batch.count + self._pending + (len(session.taken) if session.taken is not None else 0)
        if count > _RECEIVE_MAX:
            batch = run.columns.batch
            for i in range(batch.count):
                count -= 0 if batch.tag[i] else 1
            if count > _RECEIVE_MAX:
                raise ReceiveMaximumError("MQTT-3.3.4-7", f"{count} messages at once, over {_RECEIVE_MAX}")

    def _send(self, acks: bytes) -> None:
        transport = self.transport
        transport.write(acks)
        if not transport.is_writable:  # a peer that does not read acknowledgements gets no more of them
            transport.pause_reading()

    def _acknowledge(self, run: AckRun) -> None:
        """Take a run of acknowledgements, and go on with what they are of at QoS 2."""
        door = self._door
        columns = run.columns
        session = self.session
        assert session is not None
        if columns.ack_type == _PUBREL:
            self._complete(columns, door.publishing.release_run(columns, session))
        else:
            door.delivery.acknowledge(session, columns)
        if columns.ack_type == _PUBREC:
            if session.level != _LEVEL_5:
                columns.forget_codes()
            self.transport.write(encode_id_packets(columns, _PUBREL_FIRST))
        run.release()

    # Answers to control packets

    def _note_auto(self, packet_id: int, granted: Granted) -> None:
        """Begin with filters that the client did not ask for, and is not answered for."""
        del packet_id
        failed = [one.topic_filter for one in granted if one.code >= SUBSCRIBE_FAILURE]
        if failed:
            self._door.metrics.refuse("subscription", len(failed))
            self._note_denied("subscription", failed)
        self._answers.append(Answer(b"", granted))

    def _note_subscribed(self, packet_id: int, granted: Granted) -> None:
        assert self._may is not None
        assert self.session is not None
        level = self.session.level
        refused = [one for one in granted if one.code >= SUBSCRIBE_FAILURE]
        failed = [one.topic_filter for one in refused]
        if failed:
            self._door.metrics.refuse("subscription", len(failed))
            self._note_denied("subscription", [n for n in failed if not self._may.may_subscribe(plain_filter(n))])
        if self._door.authenticator.events.is_heard:
            filters = [one.topic_filter for one in granted if one.code < SUBSCRIBE_FAILURE]
            list(self._door.tell_filters(Kind.SUBSCRIBED, self.session, self.transport, filters))
        codes = [one.code if level == LEVEL_5 else min(one.code, SUBSCRIBE_FAILURE) for one in granted]
        data = encode_suback(packet_id, codes, level, self._reason_of(refused[0]) if refused else "")
        if not self._connection.takes(len(data)):  # MQTT-3.9.2-1: not for the reason's sake
            data = encode_suback(packet_id, codes, level)
        self._answers.append(Answer(self._fitting(data), granted, has_changed=len(failed) < len(granted)))

    def _reason_of(self, first: GrantedFilter) -> str:
        """Return in words why a filter, the first one, was not granted, for a client that wants to know."""
        why = ReasonCode(first.code).name.lower().replace("_", " ")
        text = f"{why}: {said(first.topic_filter)}"
        return text[:REASON_CHARS_MAX] if self._tells_why else ""

    def _note_unsubscribed(self, packet_id: int, codes: list[int]) -> None:
        assert self.session is not None
        answer = self._fitting(encode_unsuback(packet_id, codes, self.session.level))
        self._answers.append(Answer(answer, [], has_changed=ReasonCode.IMPLEMENTATION_ERROR not in codes))

    def _fitting(self, answer: bytes) -> bytes:
        """Return an answer, which the client takes.

        Raises:
            PacketTooLargeError: It is larger than the client takes, MQTT-3.1.2-24.
        """
        if not self._connection.takes(len(answer)):
            raise PacketTooLargeError("MQTT-3.1.2-24", f"an answer of {len(answer)} bytes, more than the client takes")
        return answer

    def _give_answers(self) -> None:
        """Answer when a durable session's changes are written down, at once where there are none."""
        answers, self._answers = self._answers, []
        session = self.session
        if session is not None and session.is_persistent and [answer for answer in answers if answer.has_changed]:
            self._unkept += 1
            self._door.broker.when_kept(partial(self._give_kept, session, answers))
        else:
            self._answer(session, answers)

    def _give_kept(self, session: Session, answers: list[Answer], error: LmqError | None) -> None:
        self._unkept -= 1
        if error is None:
            self._answer(session, answers)
        else:
            self._give_up(error)

    def _answer(self, session: Session | None, answers: list[Answer]) -> None:
        """Answer in one write, and begin to send for what was subscribed."""
        data = b"".join([answer.data for answer in answers])
        if data:
            self._send(data)
        if session is not None and self.session is session:
            granted = [each for answer in answers for each in answer.granted]
            if granted:
                self._door.subscribing.start(session, granted)
