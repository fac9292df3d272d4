"""One connection of the MQTT door: its events to the broker, and its session to it."""

from __future__ import annotations

from collections.abc import Iterator

from core.errors import DiskFullError, LmqError
from gateway.auth.topic_rights import Asking, reading
from gateway.door import ClientLimits
from gateway.events import Kind
from gateway.mqtt.arriving import Arriving
from gateway.mqtt.connection import MqttConnection
from gateway.mqtt.errors import MqttError, ProtocolViolationError, reason_code
from gateway.mqtt.events import AckRun, Event, PingRun, PublishRun
from gateway.mqtt.opening import Opening
from gateway.mqtt.packets import LEVEL_5, Auth, Connect, Disconnect, Subscribe, Unsubscribe
from gateway.mqtt.properties import Property
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.services import MqttServices
from gateway.mqtt.session import Session
from gateway.mqtt.states import State
from gateway.mqtt.subscribing import Steps
from gateway.net.protocol import Transport
from gateway.net.streams.first_bytes import told_of

_LOGIN = int(State.LOGIN)
_END = object()


class MqttHandler(Arriving):
    """One connection of the door."""

    __slots__ = ("_has_ended",)

    def __init__(
        self, door: MqttServices, transport: Transport, connection: MqttConnection, limits: ClientLimits
    ) -> None:
        super().__init__(door, transport, connection, limits)
        self._has_ended = False  # the peer sends no more, and its login is under way

    # The transport calls these.

    def on_data(self, data: bytes, now_ms: int) -> bool:
        """Decode what came and act on it."""
        if self._is_paused():
            self.transport.hold_reading()
        if self._aside is not None:
            data = self._set_aside(self._aside, data, now_ms)
            if not data:
                return False
        if self._connection.state == _LOGIN or self._awaited is not None:  # this much is kept, and no more is read
            self.transport.pause_reading()
        return self._work(data, now_ms)

    def go_on(self, now_ms: int) -> bool:
        """Act on what is left of what came."""
        self._connection.note_heard(now_ms)
        has_more = self._work(b"", now_ms)
        aside = self._aside
        if aside is not None and not has_more and (self._has_ended or not self._door.held.is_held(self)):
            data = self._take_up(aside)
            has_more = data != b"" and self._work(data, now_ms)
        if self._has_ended and not has_more and not self._has_to_wait():
            self._has_ended = False
            self.on_eof(now_ms)
        return has_more

    def _work(self, data: bytes, now_ms: int) -> bool:
        connection = self._connection
        has_more = False
        try:
            if data:
                connection.receive_data(data, now_ms)
            has_more = self._act(now_ms)
        except MqttError as error:
            told = told_of(data, "MQTT") if self.session is None else ""
            self._close_for(error.kind, f"{error}{told}", error.code, now_ms)
        except LmqError as error:
            code = reason_code(error)
            self._close_for(code.name.lower(), str(error), code, now_ms)
        if self._answers:
            self._give_answers()
        out = connection.data_to_send()
        if out:
            self.transport.write(out)
        return has_more

    def _act(self, now_ms: int) -> bool:
        """Act on what came, step by step, up to a login that is under way.

        Returns:
            Whether something is left because others are to have their turn.
        """
        connection = self._connection
        transport = self.transport
        events = connection.events()
        while self._awaited is None and not self._is_paused():
            if self._entering is not None:
                if not self._enter(self._entering, now_ms):
                    return True
            elif self._waiting_run is not None:
                run, self._waiting_run = self._waiting_run, None
                self._publish(run, now_ms)
            elif self._steps is not None:
                self._step(self._steps)
            else:
                event = next(events, None)
                if event is None:
                    return False
                if isinstance(event, PublishRun):
                    if self._topics is None or not self._must_ask(self._topics, event):
                        self._publish(event, now_ms)
                elif isinstance(event, AckRun):
                    self._acknowledge(event)
                elif not isinstance(event, PingRun):
                    self._take(event, now_ms)
                    continue
            if transport.is_share_over():
                return True
        return False

    def _is_paused(self) -> bool:
        return self._pacing is not None and self._pacing.is_paused

    def _has_to_wait(self) -> bool:
        """Return whether something of what came is not done yet, for what the connection waits for."""
        is_stopped = self._connection.state == _LOGIN or self._is_paused()
        return self._awaited is not None or (is_stopped and self._connection.has_more)

    def _step(self, steps: Steps | Iterator[None]) -> None:
        found = next(steps, _END)
        if isinstance(found, Opening | Asking):
            self._await(found)
        elif found is _END and self._steps is steps:
            self._steps = None

    def on_eof(self, now_ms: int) -> None:
        """The peer sends no more: its connection ends, and not by a DISCONNECT. What came is answered."""
        if self._has_to_wait():
            self._has_ended = True  # what came is done first
            return
        if self._aside is not None and self._aside.has_left:
            self._has_ended = True
            self.transport.request_turn()  # in which it is taken up
            return
        self._connection.receive_eof()
        self._close_later()
        self._leave(now_ms)

    def on_closed(self, now_ms: int) -> None:
        """Let go of the session."""
        self._connection.stop()
        self._leave(now_ms)
        if self._aside is not None:
            self._aside.give_back()
        if self._denials is not None:
            self._denials.end()
        self._door.forget(self)

    def on_timer(self, now_ms: int) -> None:
        """Close a connection whose peer is overdue, or read on after a pause."""
        pacing = self._pacing
        if pacing is not None and pacing.is_paused and now_ms >= pacing.until_ms:
            self._end_pause(pacing, now_ms)
        if self.session is not None and self.session.pace is not None:
            self._send_on(self.session, now_ms)
        if self._awaited is not None:  # nothing is read from the peer meanwhile
            self._connection.note_heard(now_ms)
        try:
            self._connection.handle_timer(now_ms)
        except MqttError as error:
            self._close_for(error.kind, str(error), error.code, now_ms)
        out = self._connection.data_to_send()
        if out:
            self.transport.write(out)

    def next_deadline_ms(self) -> int | None:
        """Return when the peer is overdue, or a pause is over."""
        until_ms = self._connection.next_deadline_ms()
        if self._pacing is not None and self._pacing.is_paused:
            until_ms = self._pacing.until_ms
        pace = None if self.session is None else self.session.pace
        if pace is None or pace.until_ms is None:
            return until_ms
        return pace.until_ms if until_ms is None else min(until_ms, pace.until_ms)

    def _send_on(self, session: Session, now_ms: int) -> None:
        """Send what waits for the end of a pause, where it is over."""
        pace = session.pace
        if pace is not None and pace.until_ms is not None and now_ms >= pace.until_ms:
            pace.go_on()
            self._door.delivery.wake(session)

    # Control packets

    def _take(self, event: Event, now_ms: int) -> None:
        if isinstance(event, Connect):
            self._connect(event, now_ms)
        elif isinstance(event, Subscribe):
            self._subscribe(event, now_ms)
        elif isinstance(event, Unsubscribe):
            self._unsubscribe(event)
        elif isinstance(event, Disconnect):
            self._disconnect(event, now_ms)
        elif isinstance(event, Auth):
            self._prove(event, now_ms)

    def _disconnect(self, event: Disconnect, now_ms: int) -> None:
        session = self.session
        if session is not None and Property.SESSION_EXPIRY in event.properties.numbers:
            expiry_s = self._door.limit_expiry(event.properties.numbers[Property.SESSION_EXPIRY])
            if expiry_s and not session.expiry_s:
                raise ProtocolViolationError("MQTT-3.14.2-2", "a session expiry for a session that was to have none")
            session.expiry_s = expiry_s
        if event.code != ReasonCode.DISCONNECT_WITH_WILL:
            self._forget_will()
        if self._answers:  # to what came right before
            self._give_answers()
        out = self._connection.data_to_send()
        if out:
            self.transport.write(out)
        self._leave(now_ms)
        if not self._unkept and not self._pending:
            self._hang_up("disconnect")
            return
        self.transport.end_reason = self.transport.end_reason or "disconnect"
        self._close_later()

    def _subscribe(self, packet: Subscribe, now_ms: int) -> None:
        assert self.session is not None
        assert self._may is not None
        if self._topics is not None:
            packet = Subscribe(packet.packet_id, iter(filters := list(packet.filters)), packet.identifier)
            wanted = self._door.subscribing.find_plain([one for one, _ in filters], self.session)
            asking = self._topics.ask(reading(wanted), keeps=True)
            if asking is not None:
                self._steps = self._subscribe_after(asking, packet, now_ms)
                return
        self._steps = self._door.subscribing.subscribe(self.session, packet, self._may, now_ms, self._note_subscribed)

    def _subscribe_after(self, asking: Asking, packet: Subscribe, now_ms: int) -> Iterator[Asking]:
        yield asking
        assert self.session is not None
        assert self._may is not None
        subscribing = self._door.subscribing
        self._steps = subscribing.subscribe(self.session, packet, self._may, now_ms, self._note_subscribed)

    def _unsubscribe(self, packet: Unsubscribe) -> None:
        assert self.session is not None
        door = self._door
        try:
            if self.session.is_persistent:
                door.broker.check_commits()
        except DiskFullError:
            if self.session.level != LEVEL_5:
                raise  # an UNSUBACK cannot say so: MQTT-4.8.0-2
            self._steps = door.subscribing.refuse_ends(packet, self._note_unsubscribed)
            return
        if door.authenticator.events.is_heard:
            filters = door.tell_filters(Kind.UNSUBSCRIBED, self.session, self.transport, packet.filters)
            packet = Unsubscribe(packet.packet_id, filters)
        self._steps = self._door.subscribing.unsubscribe(self.session, packet, self._note_unsubscribed)
