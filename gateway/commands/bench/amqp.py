"""Peers that speak AMQP 0-9-1: methods by pamqp, publishes made once, deliveries cut by hand."""

from __future__ import annotations

import struct
import time
from collections import deque
from typing import Any

from pamqp import commands, frame, header

from gateway.commands.bench.figures import Tally, stamp
from gateway.commands.bench.peers import Consumer, Pace, Peer, Publisher
from gateway.commands.bench.plan import Plan
from gateway.commands.doors.place import Place
from gateway.commands.refusing import EXIT_DENIED, EXIT_MISSING, EXIT_NOT_NOW

GUEST = "guest"
PREFETCH = 1_000  # chosen, as clients of loads usually have it: acknowledgements are not waited for
METHOD, HEADER, BODY, END = 1, 2, 3, b"\xce"
FRAME = struct.Struct(">BHI")
NUMBERS = struct.Struct(">HHQB")  # class, method, delivery tag, multiple
ACK = struct.Struct(">BHIHHQBB")
BASIC, BASIC_ACK, BASIC_NACK = 60, 80, 120
BODY_SIZE = struct.Struct(">Q")
_CODES = {403: EXIT_DENIED, 530: EXIT_DENIED, 404: EXIT_MISSING}


class _AmqpPeer(Peer):
    """Logs in and opens channel 1, then `prepare` says what is asked for, one after the other."""

    frame_max = 4_096

    def greet(self) -> None:
        self._asked: deque[Any] = deque()
        self.transport.write(b"AMQP\x00\x00\x09\x01")

    def prepare(self) -> list[Any]:
        """Return the methods that are sent on channel 1 before it begins, each of which has an answer."""
        raise NotImplementedError

    def send(self, method: Any, channel: int = 1) -> None:  # noqa: ANN401 - pamqp's
        """Send a method."""
        self.transport.write(frame.marshal(method, channel))

    def take(self, data: bytes) -> int:
        """Take whole frames."""
        at = 0
        while len(data) - at >= FRAME.size:
            kind, _, size = FRAME.unpack_from(data, at)
            end = at + FRAME.size + size + 1
            if end > len(data):
                break
            if not self.take_frame(kind, data, at + FRAME.size, end - 1):
                method: Any = frame.unmarshal(data[at:end])[2]
                self._take_method(method)
            at = end
        self.flush()
        return at

    def take_frame(self, kind: int, data: bytes, start: int, end: int) -> bool:
        """Take a frame of the load; return whether it is one."""
        raise NotImplementedError

    def flush(self) -> None:
        """Do what one read asks for."""

    def _take_method(self, method: Any) -> None:  # noqa: ANN401 - pamqp's
        place = self.place
        if isinstance(method, commands.Connection.Start):
            user = GUEST if place.user is None else place.user
            password = place.password or (GUEST if place.user is None else "")
            self.send(commands.Connection.StartOk({}, "PLAIN", f"\0{user}\0{password}", "en_US"), 0)
        elif isinstance(method, commands.Connection.Tune):
            self.frame_max = method.frame_max or 131_072
            self.send(commands.Connection.TuneOk(method.channel_max, self.frame_max, 0), 0)
            self.send(commands.Connection.Open(place.vhost), 0)
        elif isinstance(method, commands.Connection.OpenOk):
            self.send(commands.Channel.Open())
        elif isinstance(method, commands.Connection.Close | commands.Channel.Close):
            code = _CODES.get(method.reply_code or 0, EXIT_NOT_NOW)
            self.fail(f"amqp {place.address}: {method.reply_code} {method.reply_text}", code)
        elif isinstance(method, commands.Channel.OpenOk):
            self._asked.extend(self.prepare())
            self._go_on()
        elif not self.ready.done():
            self._go_on()
        else:
            self.take_answer()

    def take_answer(self) -> None:
        """Take the answer to what was asked since it began."""

    def _go_on(self) -> None:
        if self._asked:
            self.send(self._asked.popleft())
        else:
            self.ready.set_result(None)


class AmqpPublisher(_AmqpPeer, Publisher):
    """Publishes to one queue, or an exchange; with confirms where there is a QoS."""

    def __init__(self, place: Place, tally: Tally, pace: Pace, plan: Plan) -> None:
        super().__init__(place, tally, pace, is_answered=plan.qos > 0)
        self._where = (plan.exchange, plan.name)
        self._size = plan.size
        self._stamped = len(stamp(plan.size))
        self._head = b""
        self._tails: list[bytes] = []
        self._until = 0  # all tags up to this one are confirmed
        self._beyond: set[int] = set()
        self._sent_ns: deque[int] = deque()

    def prepare(self) -> list[Any]:
        """Declare the queue and ask for confirms."""
        exchange, key = self._where
        properties = commands.Basic.Properties(delivery_mode=2 if self.is_answered else 1)
        method = frame.marshal(commands.Basic.Publish(0, exchange, key), 1)
        self._head = method + frame.marshal(header.ContentHeader(0, self._size, properties), 1)
        part = self.frame_max - FRAME.size - 1
        self._tails = [FRAME.pack(BODY, 1, min(part, self._size - at)) for at in range(0, self._size, part)]
        asked: list[Any] = [] if exchange else [commands.Queue.Declare(0, key, durable=True)]
        return [*asked, *([commands.Confirm.Select()] if self.is_answered else [])]

    @property
    def size(self) -> int:
        """How many bytes a body has."""
        return self._size

    def question(self) -> bytes:
        """Return a basic.qos, which changes nothing."""
        return frame.marshal(commands.Basic.Qos(0, 0, global_=False), 1)

    def take_answer(self) -> None:
        """Take the answer to the question."""
        self.end()

    def make(self, count: int) -> bytes:
        """Return publishes."""
        part = self.frame_max - FRAME.size - 1
        body = stamp(self._size) + b"x" * (self._size - self._stamped)
        parts = [self._head]
        for number, head in enumerate(self._tails):
            parts += (head, body[number * part : (number + 1) * part], END)
        if self.is_answered:
            self._sent_ns.extend([time.perf_counter_ns()] * count)
        return b"".join(parts) * count

    def take_frame(self, kind: int, data: bytes, start: int, end: int) -> bool:
        """Take a confirm."""
        if kind != METHOD or end - start != NUMBERS.size or data[start : start + 2] != b"\x00\x3c":
            return False
        _, method, tag, is_multiple = NUMBERS.unpack_from(data, start)
        if method not in {BASIC_ACK, BASIC_NACK}:
            return False
        if method == BASIC_NACK:
            self.fail("amqp refuses the message (basic.nack): the queue is full, or cannot be written", EXIT_NOT_NOW)
        if is_multiple & 1 or tag == self._until + 1:
            self._confirm(tag)
        elif tag > self._until:
            self._beyond.add(tag)
        while self._until + 1 in self._beyond:
            self._beyond.discard(self._until + 1)
            self._confirm(self._until + 1)
        return True

    def _confirm(self, tag: int) -> None:
        now_ns = time.perf_counter_ns()
        self._beyond -= set(range(self._until + 1, tag + 1)) if self._beyond else set()
        count = max(tag - self._until, 0)
        for _ in range(min(count, len(self._sent_ns))):
            self.tally.note_latency(now_ns - self._sent_ns.popleft())
        self._until = max(tag, self._until)
        if count:
            self.answer(count)


class AmqpConsumer(_AmqpPeer, Consumer):
    """Consumes one queue and acknowledges each read's messages at once."""

    def __init__(self, place: Place, tally: Tally, queue: str, qos: int) -> None:
        super().__init__(place, tally)
        self._queue = queue
        self._acks = qos > 0
        self._tag = self._acked = 0
        self._left = 0  # bytes of a body that are to come
        self._parts: list[bytes] = []
        self._bodies: list[bytes] = []

    def prepare(self) -> list[Any]:
        """Declare the queue, and consume."""
        return [
            commands.Queue.Declare(0, self._queue, durable=True),
            commands.Basic.Qos(0, PREFETCH, global_=False),
            commands.Basic.Consume(0, self._queue, "", no_ack=not self._acks),
        ]

    def take_frame(self, kind: int, data: bytes, start: int, end: int) -> bool:
        """Take a part of a delivery."""
        if kind == BODY:
            self._parts.append(data[start:end])
            self._left -= end - start
        elif kind == HEADER:
            (self._left,) = BODY_SIZE.unpack_from(data, start + 4)
        elif data[start : start + 4] == b"\x00\x3c\x00\x3c":
            at = start + 5 + data[start + 4]  # behind the consumer's tag
            (self._tag,) = BODY_SIZE.unpack_from(data, at)
            return True
        else:
            return False
        if not self._left:
            self._bodies.append(b"".join(self._parts))
            self._parts.clear()
        return True

    def flush(self) -> None:
        """Count and acknowledge what came."""
        bodies, self._bodies = self._bodies, []
        self.count(bodies)
        tag = self._tag - (1 if self._left else 0)
        if self._acks and bodies and tag > self._acked:
            self._acked = tag
            self.transport.write(ACK.pack(METHOD, 1, 13, BASIC, BASIC_ACK, tag, 1, END[0]))
