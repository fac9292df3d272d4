"""The state machine of one socket: handshake, channels, heartbeats, closing; it does no I/O and knows no broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pamqp import base, commands
from pamqp.commands import Basic, Connection as Method

from core import octets
from core.metrics import DoorMetrics
from gateway.amqp.channel import Channel, Incomplete, check_channel_count, unbounded, unexpected_content
from gateway.amqp.codec import PUBLISH
from gateway.amqp.errors import AmqpError, PeerSilentError, undecodable, unexpected_frame, unimplemented
from gateway.amqp.events import (
    ChannelEnded,
    ConnectionEnded,
    CutterPool,
    Event,
    FramesTaken,
    LoginAsked,
    OpenAsked,
    PublishRun,
    SettleRun,
    make_publish_run,
    note_method,
    secret_of,
)
from gateway.amqp.frames import FRAME_HEARTBEAT, FRAME_METHOD, FRAME_OVERHEAD
from gateway.amqp.handshake import (
    HEADER_OF_0_9,
    PROTOCOL_HEADER,
    ConnectionLimits,
    Login,
    agreed_frame_max,
    not_amqp,
    start_method,
)
from gateway.amqp.heartbeat import HEARTBEAT_FRAME, Heartbeat, check_beat
from gateway.amqp.incoming import Incoming
from gateway.amqp.methods import decode_method, encode_method
from gateway.amqp.reply_codes import ReplyCode
from gateway.amqp.states import STATE_NAMES, STEP_BY_METHOD, State, Step, find_next, follow
from gateway.amqp.unacked import is_settle

FRAME_MAX_AT_FIRST = 8_192  # before both sides agreed; room for a token as password
FRAMES_AT_ONCE = 32  # without an event between them: a channel.open each, or parts of messages
CLOSE_WAIT_MS = 5_000  # how long the answer to connection.close is waited for; chosen: clients that work answer at once

_HEADER = int(State.HEADER)
_LOGIN = int(State.LOGIN)
_OPEN = int(State.OPEN)
_CLOSED = int(State.CLOSED)
_FRAME_METHOD = FRAME_METHOD
_FRAMES_AT_ONCE = FRAMES_AT_ONCE
_FRAMES_TAKEN = FramesTaken()


class AmqpConnection:
    """One connection. `events` hands out what came, as far as it is all there.

    Args:
        limits: What to offer and to bear.
        pool: Where runs of publishes are cut; shared by all connections of the door.
        now_ms: When the socket was accepted.
        version: Told to the client.
        metrics: Count what comes and goes.
    """

    def __init__(
        self, limits: ConnectionLimits, pool: CutterPool, now_ms: int, version: str, metrics: DoorMetrics
    ) -> None:
        self.limits = limits
        self.state = State.HEADER
        self.channels: dict[int, Channel] = {}
        self.user = b""
        self.client_capabilities: frozenset[str] = frozenset()
        self.payload_max = FRAME_MAX_AT_FIRST - FRAME_OVERHEAD
        self.heartbeat = Heartbeat(now_ms)
        self._channel_max = limits.channel_max
        self.check_channel: Callable[[], None] = unbounded  # raises where the user may have no more
        self._pool = pool
        self._version = version
        self._metrics = metrics
        self._incoming = Incoming(len(PROTOCOL_HEADER))
        self._incomplete = Incomplete(limits.incomplete_bytes_max)
        self._outbox: list[bytes] = []
        self._give_up_at_ms = now_ms + limits.handshake_ms

    @property
    def is_closed(self) -> bool:
        """Whether the socket may be closed once what is to be sent was sent."""
        return self.state == State.CLOSED

    # In

    def receive_data(self, data: bytes, now_ms: int) -> None:
        """Take bytes; the events of earlier ones have been handled."""
        self.heartbeat.received_ms = now_ms
        self._incoming.receive(data)

    def take_up(self, now_ms: int) -> None:
        """Go on with what came before, which waited for a turn or for the login: the peer was not silent."""
        self.heartbeat.received_ms = now_ms
        if self._incoming.is_waiting():
            self._incoming.receive(b"")

    def unread(self, run: PublishRun) -> None:
        """Give back what the batch of the last event has no more, because it was cut; it comes as the next event."""
        self._incoming.pos = run.cutter.ends[run.batch.count - 1]
        if run.channel.is_confirming:
            run.channel.published -= run.count - run.batch.count

    def has_more(self) -> bool:
        """Return whether something waits for the login, or for the rest of its frame."""
        return self._incoming.has_tail()

    def receive_eof(self) -> None:
        """The peer is gone: nothing is cut or sent any more."""
        self.state = follow(self.state, Step.END)

    def events(self) -> Iterator[Event]:
        """Give what came, in order; the rest waits for more bytes."""
        return self

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        if self.state not in {_CLOSED, _LOGIN}:  # what comes after a login waits for its answer
            try:
                event = self._next_event()
            except AmqpError as error:
                event = self.fail(error, None)[0]
            if event is not None:
                return event
        is_framed = self.state not in {_HEADER, _LOGIN}  # else it was not looked at, or is a part of the first words
        self._incoming.keep_tail(self.state == _CLOSED, is_framed)
        raise StopIteration

    def _next_event(self) -> Event | None:
        incoming = self._incoming
        if self.state == _HEADER and not self._take_protocol_header():
            return ConnectionEnded(not_amqp(incoming.data)) if self.is_closed else None
        for _ in range(_FRAMES_AT_ONCE):
            packed = incoming.cut(self.payload_max)
            if not packed:
                return None
            number = packed >> 8 & 0xFFFF
            event = self._next_run(packed & 0xFF, number)
            if event is None:
                event = self._take_frame(packed & 0xFF, number, incoming.take_payload(packed >> 24))
            if event is not None or self.state == _CLOSED:  # nothing counts behind the last close-ok
                return event
        return _FRAMES_TAKEN

    def _next_run(self, kind: int, number: int) -> Event | None:
        """Cut a run of publishes or acknowledgements, if that is what is there and the channel is open for it."""
        if kind != _FRAME_METHOD or self.state != _OPEN:
            return None
        channel = self.channels.get(number)
        if channel is None or channel.is_closing or channel.content is not None:
            return None
        incoming = self._incoming
        pos, end = incoming.pos, len(incoming.data)
        if is_settle(incoming.view, pos, end):
            incoming.pos = channel.unacked.cut_settles(incoming.view, pos, end, number)
            return SettleRun(channel)
        if channel.again is not None and octets.starts_with(incoming.view, pos, channel.again_frame):
            incoming.pos = pos + len(channel.again_frame)
            again: Event = channel.again
            return again
        cutter = self._pool.show()
        most, user = self.limits.body_bytes_max, self.user
        after = cutter.cut(incoming.view, pos, end, number, self.payload_max, most, user, channel.reply_name)
        if after == pos:
            return None
        incoming.pos = after
        return make_publish_run(self._pool, channel)

    # Frames one by one

    def _take_frame(self, kind: int, number: int, payload: bytes) -> Event | None:
        channel = self.channels.get(number)
        if self.state == State.CLOSING or (channel is not None and channel.is_closing):
            self._take_while_closing(kind, number, payload)
            return None
        try:
            if kind == FRAME_METHOD:
                return self._on_method(number, payload)
            if kind == FRAME_HEARTBEAT:
                check_beat(number, payload)
                return None
            return self._on_content(kind, number, payload)
        except AmqpError as error:
            if error.is_fatal or channel is None:
                raise
            return self.fail(error, channel)[0]

    def _take_while_closing(self, kind: int, number: int, payload: bytes) -> None:
        index = int.from_bytes(payload[:4], "big") if kind == FRAME_METHOD else 0
        if self.state == State.CLOSING:
            if index == Method.Close.index:
                self.send_method(0, Method.CloseOk())
            if index in {Method.Close.index, Method.CloseOk.index}:
                self.state = follow(self.state, Step.CLOSE_OK)
        elif index == commands.Channel.Close.index:
            self.send_method(number, commands.Channel.CloseOk())
            self._forget_channel(number)
        elif index == commands.Channel.CloseOk.index:
            self._forget_channel(number)

    def _on_content(self, kind: int, number: int, payload: bytes) -> Event | None:
        channel = self.channels.get(number)
        if number == 0 or self.state != State.OPEN:
            raise unexpected_frame(kind, payload)
        if channel is None:
            raise unexpected_content()
        if not channel.take_part(kind, payload, self.limits.body_bytes_max):
            return None
        channel.finish_content(self._pool.show(), self.user)
        return make_publish_run(self._pool, channel)

    def _on_method(self, number: int, payload: bytes) -> Event | None:
        index = int.from_bytes(payload[:4], "big")
        if number == 0:
            return self._on_connection_method(decode_method(payload))
        if self.state != State.OPEN:
            raise unexpected_frame(FRAME_METHOD, payload)
        channel = self.channels.get(number)
        if channel is not None and channel.content is not None:
            raise channel.content.interrupted()
        if index == commands.Channel.CloseOk.index:  # both sides closed at once: the channel was free by then
            return None
        if index == commands.Channel.Open.index:
            decode_method(payload)
            self._open_channel(number)
            return None
        if channel is None:
            raise AmqpError(ReplyCode.CHANNEL_ERROR, "expected 'channel.open'", index)
        if index == PUBLISH:
            channel.start_content(payload)
            return None
        return self._on_channel_method(channel, decode_method(payload), payload)

    def _on_channel_method(self, channel: Channel, method: base.Frame, payload: bytes) -> Event | None:
        if isinstance(method, commands.Channel.Close):
            self._forget_channel(channel.number)
            self.send_method(channel.number, commands.Channel.CloseOk())
            return ChannelEnded(channel)
        if isinstance(method, Basic.Ack | Basic.Nack | Basic.Reject):  # runs take them
            raise undecodable(b"", method.index)
        if method.index >> 16 == Method.frame_id:
            raise unimplemented(method.index)
        return note_method(channel, method, payload)

    def _open_channel(self, number: int) -> None:
        if number in self.channels:
            raise AmqpError(ReplyCode.CHANNEL_ERROR, "second 'channel.open' seen", commands.Channel.Open.index)
        check_channel_count(len(self.channels), self._channel_max)
        self.check_channel()
        self.channels[number] = Channel(number, self._incomplete)
        self._metrics.channel_changes += 1
        opened = commands.Channel.OpenOk()
        opened.channel_id = ""  # as RabbitMQ has it: CloudAMQP's JavaScript client reads on as if it were empty
        self.send_method(number, opened)

    def _forget_channel(self, number: int) -> None:
        del self.channels[number]
        self._metrics.channel_changes += 1

    # The handshake, and the end

    def _take_protocol_header(self) -> bool:
        got = self._incoming.data[: len(PROTOCOL_HEADER)]
        if not PROTOCOL_HEADER.startswith(got) and not HEADER_OF_0_9.startswith(got):
            self._outbox.append(PROTOCOL_HEADER)
            self.state = follow(self.state, Step.END)
            return False
        if len(got) < len(PROTOCOL_HEADER):
            return False
        self._incoming.pos = len(PROTOCOL_HEADER)
        self.send_method(0, start_method(self.limits, self._version))
        self.state = follow(self.state, Step.HEADER)
        return True

    def _on_connection_method(self, method: base.Frame) -> Event | None:
        state = find_next(self.state, STEP_BY_METHOD.get(type(method)))
        if state is None:
            reason = f"unexpected method in connection state {STATE_NAMES[State(self.state)]}"
            raise AmqpError(ReplyCode.CHANNEL_ERROR, reason, method.index)
        event = self._do_connection_method(method)
        self.state = state
        return event

    def _do_connection_method(self, method: base.Frame) -> Event | None:
        if isinstance(method, Method.StartOk):
            login = Login(method, self.limits.mechanisms)
            self.client_capabilities = login.capabilities
            return LoginAsked(method.mechanism, login.user, login.password, login.client)
        if isinstance(method, Method.TuneOk):
            self._tune(method)
        elif isinstance(method, Method.Open):
            return OpenAsked(method.virtual_host)
        elif isinstance(method, Method.UpdateSecret | Method.SecureOk):
            return secret_of(method)
        elif isinstance(method, Method.Close):
            self.send_method(0, Method.CloseOk())
            return ConnectionEnded("")
        return None

    def accept_login(self, user: bytes) -> None:
        """Let the user in, and go on with tuning."""
        self.user = user
        self.send_method(0, Method.Tune(self.limits.channel_max, self.limits.frame_max, self.limits.heartbeat_s))
        self.state = follow(self.state, Step.ACCEPT_LOGIN)

    def refuse_login(self, error: AmqpError) -> None:
        """Turn the user away: a client that can be told is told, any other finds the connection closed."""
        if "authentication_failure_close" in self.client_capabilities:
            self.send_method(0, Method.Close(error.code, error.reply_text, 0, 0))
        self.state = follow(self.state, Step.END)

    def _tune(self, method: Method.TuneOk) -> None:
        self.payload_max = agreed_frame_max(method, self.limits) - FRAME_OVERHEAD
        self._channel_max = method.channel_max or self.limits.channel_max
        self.heartbeat.start(method.heartbeat * 1_000)

    def accept_open(self) -> None:
        """Grant the virtual host."""
        self.send_method(0, Method.OpenOk())
        self.state = follow(self.state, Step.ACCEPT_OPEN)

    def fail(self, error: AmqpError, channel: Channel | None) -> list[Event]:
        """Answer a violation on `channel` (None: the connection's); return what that ended."""
        if channel is not None and not error.is_fatal:
            self.end_channel(channel, error)
            return [ChannelEnded(channel)]
        if find_next(self.state, Step.FAIL) == State.CLOSING:
            self.close(error)
        else:
            self.state = follow(self.state, Step.FAIL)
        return [ConnectionEnded(str(error))]

    def close(self, error: AmqpError) -> None:
        """Send connection.close and wait for the answer; everything else that comes is ignored."""
        self.send_method(0, Method.Close(*error.close_arguments()))
        self._give_up_at_ms = self.heartbeat.received_ms + CLOSE_WAIT_MS
        self.state = follow(self.state, Step.FAIL)

    def end_channel(self, channel: Channel, error: AmqpError) -> None:
        """Send channel.close; until the answer everything on the channel is ignored."""
        if channel.is_closing or self.channels.get(channel.number) is not channel:
            return
        channel.is_closing = True
        channel.drop_content()
        self.send_method(channel.number, commands.Channel.Close(*error.close_arguments()))

    # Out

    def send_method(self, number: int, method: base.Frame) -> None:
        """Put a method into what is to be sent."""
        self._outbox.append(encode_method(method, number))

    def send(self, data: bytes) -> None:
        """Put whole frames into what is to be sent."""
        self._outbox.append(data)

    def data_to_send(self) -> bytes:
        """Return all that is to be sent, once."""
        if not self._outbox:
            return b""
        self.heartbeat.on_sent()
        data = self._outbox[0] if len(self._outbox) == 1 else b"".join(self._outbox)
        self._outbox.clear()
        return data

    # Time

    def next_deadline_ms(self) -> int | None:
        """Return the moment that `handle_timer` is wanted at."""
        if self.state == State.CLOSED:
            return None
        return self._give_up_at_ms if self.state != State.OPEN else self.heartbeat.next_deadline_ms()

    def handle_timer(self, now_ms: int) -> None:
        """Send a heartbeat if nothing else was sent.

        Raises:
            PeerSilentError: The peer is silent for too long: the connection is over.
        """
        if self.state == State.OPEN:
            if self.heartbeat.is_lost(now_ms):
                self._give_up(f"missed heartbeats, timeout: {self.heartbeat.interval_ms // 1_000}s")
            if self.heartbeat.take_beat(now_ms):
                self._outbox.append(HEARTBEAT_FRAME)
        elif self.state != State.CLOSED and now_ms >= self._give_up_at_ms:
            self._give_up("no answer to connection.close" if self.state == State.CLOSING else "handshake took too long")

    def _give_up(self, reason: str) -> None:
        self.state = follow(self.state, Step.END)
        raise PeerSilentError(reason)
