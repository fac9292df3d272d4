"""A client of our own MQTT door, in memory: one end of a bridge.

Nothing is called back from inside a call: what the door writes is read in a turn of its own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Protocol

from gateway.auth.credentials import OWN_PEER
from gateway.bridges import packets
from gateway.bridges.packets import FAILURE, Delivery
from gateway.bridges.rules import Rules
from gateway.mqtt.properties import Property, Value
from gateway.net.protocol import ConnectionHandler, Transport

LOGGER = logging.getLogger(__name__)

QUOTA_EXCEEDED = 0x97
RETRY_S = 1.0  # until a message is published again that the door had no room for
PENDING_MAX = 1_000  # publishes that are not acknowledged, from here on nothing more is taken from the other side
_ID_MAX = 65_535  # packet identifiers have two bytes


class LinkOwner(Protocol):
    """What a link tells its bridge."""

    def on_delivery(self, delivery: Delivery) -> None:
        """The door sent a message; `acknowledge` it when it has arrived."""

    def on_link_lost(self, why: str) -> None:
        """The door closed the connection."""


Opened = Callable[[Transport], ConnectionHandler]
Filters = Callable[[], Iterable[bytes]]
Now = Callable[[int], int]  # with the bytes that are about to be handled, the moment in ms


class LocalLink(Transport):
    """One connection to the door, from its CONNECT to its end.

    Args:
        connect: Its CONNECT.
        rules: What is subscribed to.
        owner: Hears of what comes.
        begin_read: Tells the moment.
        find_filters: Gives what the session is subscribed to.
    """

    __slots__ = (
        "_begin_read",
        "_buffer",
        "_find_filters",
        "_handler",
        "_has_more",
        "_is_held",
        "_is_open",
        "_is_paused",
        "_is_pumping",
        "_loop",
        "_outgoing",
        "_owner",
        "_packet_id",
        "_rules",
        "_taken",
        "_unanswered",
        "drained",
        "ready",
    )

    def __init__(
        self, connect: packets.Connect, rules: Rules, owner: LinkOwner, begin_read: Now, find_filters: Filters
    ) -> None:
        super().__init__()
        self.peer = OWN_PEER
        self.peer_name = connect.client_id.decode()
        self.peer_host = b"\x7f\0\0\1\0\0\0\0"
        self.is_writable = False  # nothing is delivered before `start`
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()  # subscribed
        self.drained = asyncio.Event()  # there is room for more publishes
        self.drained.set()
        self._loop = asyncio.get_running_loop()
        self._rules = rules
        self._owner = owner
        self._begin_read = begin_read
        self._find_filters = find_filters
        self._handler: ConnectionHandler | None = None
        self._buffer = bytearray()  # of what the door wrote
        self._outgoing = bytearray(connect.data)
        self._is_open = True
        self._is_paused = self._is_held = self._is_pumping = self._has_more = False
        self._packet_id = 0
        self._taken: dict[int, tuple[bytes, Callable[[int], None]]] = {}  # publishes that wait for their answer
        self._unanswered: set[int] = set()  # subscriptions that do

    def open(self, connect: Opened) -> None:
        """Connect to the door."""
        self._handler = connect(self)
        self._pump_soon()

    def start(self) -> None:
        """Let the door deliver."""
        self.is_writable = True
        if self._handler is not None:
            self._handler.on_writable(self._begin_read(0))

    def publish(
        self,
        topic: bytes,
        body: bytes,
        qos: int,
        items: Iterable[tuple[Property, Value]],
        *,
        is_retained: bool,
        then: Callable[[int], None],
    ) -> None:
        """Publish a message; `then` is called with the door's reason code when it is stored, or refused for good."""
        if not qos:
            self._send(packets.publish(topic, body, 0, 0, items, is_retained=is_retained))
            then(0)
            return
        packet_id = self._next_id()
        packet = packets.publish(topic, body, qos, packet_id, items, is_retained=is_retained)
        self._taken[packet_id] = (packet, then)
        self._send(packet)
        self._note_room()

    def acknowledge(self, delivery: Delivery) -> None:
        """Tell the door that a delivery has arrived."""
        if delivery.qos:
            self._send(packets.acknowledge(delivery.qos, delivery.packet_id))

    def end(self) -> None:
        """Leave, as one whose connection is lost: the session stays."""
        if self._is_open:
            self._is_open = False
            self._taken.clear()
            self._loop.call_soon(self._close_handler)

    # What the door calls

    @property
    def local_address(self) -> tuple[str, int]:
        """No address."""
        return "bridge", 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Take what the door says."""
        self.bytes_out += len(data)
        if self._is_open:
            if not self._buffer:
                self._loop.call_soon(self._read)
            self._buffer += data

    def close(self) -> None:
        """The door closes the connection: what it said before is read."""
        self._loop.call_soon(self._lose)

    finish = close
    part = close
    abort = close

    def pause_reading(self) -> None:
        """Keep what is published."""
        self._is_paused = True
        self._note_room()

    def resume_reading(self) -> None:
        """Go on publishing."""
        self._is_paused = False
        self._note_room()
        self._pump_soon()

    def hold_reading(self) -> None:
        """Keep what is published, whatever `resume_reading` says."""
        self._is_held = True
        self._note_room()

    def release_reading(self) -> None:
        """Go on publishing, unless reading is paused."""
        self._is_held = False
        self._note_room()
        self._pump_soon()

    def request_turn(self) -> None:
        """Let the handler go on."""
        self._has_more = True
        self._pump_soon()

    def fileno(self) -> int:
        """No socket."""
        return -1

    def deadline_changed(self) -> None:
        """There is no deadline: the keep-alive is 0."""

    # Turns of its own

    def _send(self, data: bytes) -> None:
        self._outgoing += data
        self._pump_soon()

    def _pump_soon(self) -> None:
        if not self._is_pumping and self._is_open:
            self._is_pumping = True
            self._loop.call_soon(self._pump)

    def _pump(self) -> None:
        """Hand to the door what waits for it."""
        self._is_pumping = False
        handler = self._handler
        if handler is None or not self._is_open or self._is_paused or self._is_held:
            return
        data, self._outgoing = bytes(self._outgoing), bytearray()
        self.bytes_in += len(data)
        try:
            now_ms = self._begin_read(len(data))
            if self._has_more:
                self._has_more = handler.go_on(now_ms)
                self._outgoing[:0] = data
            elif data:
                self._has_more = handler.on_data(data, now_ms)
        except Exception:
            LOGGER.exception("the session of a bridge failed client=%r", self.peer_name)
            self._lose()
            return
        if self._has_more or self._outgoing:
            self._pump_soon()

    def _read(self) -> None:
        """Read what the door wrote."""
        for packet in packets.cut(self._buffer):
            if self._is_open:
                self._take(packet)

    def _take(self, packet: bytes) -> None:
        kind = packet[0] >> 4
        if kind == packets.PUBLISH:
            self._owner.on_delivery(packets.read_delivery(packet))
        elif kind == packets.PUBACK:
            self._take_puback(*packets.read_answer(packet))
        elif kind == packets.PUBREL:
            self._send(packets.complete(packets.read_answer(packet)[0]))
        elif kind in {packets.SUBACK, packets.UNSUBACK}:
            self._take_suback(kind, *packets.read_answer(packet))
        elif kind == packets.CONNACK:
            code = packets.reason_of(packet)
            if code < FAILURE:
                self._subscribe()
            else:
                self._fail(f"the door refused the session: {code:#04x}")
        elif kind == packets.DISCONNECT:
            self._fail(f"the door ended the session: {packets.reason_of(packet):#04x}")

    def _take_puback(self, packet_id: int, code: int) -> None:
        found = self._taken.get(packet_id)
        if found is None:
            return
        packet, then = found
        if code == QUOTA_EXCEEDED:  # the disk or the memory is low: later
            self._loop.call_later(RETRY_S, self._publish_again, packet_id, packet)
            return
        del self._taken[packet_id]
        self._note_room()
        then(code)

    def _publish_again(self, packet_id: int, packet: bytes) -> None:
        if self._is_open and packet_id in self._taken:
            self._send(packet)

    def _subscribe(self) -> None:
        """Subscribe to what the rules say, and to nothing else any more."""
        wanted = [name.encode() for name, _ in self._rules.subscriptions()]
        for number, (name, qos) in enumerate(self._rules.subscriptions()):
            self._send(packets.subscribe(self._ask(), name.encode(), qos, number + 1))
        for name_before in self._find_filters():
            if name_before not in wanted:
                self._send(packets.unsubscribe(self._ask(), name_before))
        if not self._unanswered:
            self.ready.set_result(None)

    def _ask(self) -> int:
        packet_id = self._next_id()
        self._unanswered.add(packet_id)
        return packet_id

    def _take_suback(self, kind: int, packet_id: int, code: int) -> None:
        self._unanswered.discard(packet_id)
        if code >= FAILURE and kind == packets.SUBACK:
            self._fail(f"the door refused a subscription: {code:#04x}")
        elif not self._unanswered and not self.ready.done():
            self.ready.set_result(None)

    def _next_id(self) -> int:
        while True:
            self._packet_id = self._packet_id % _ID_MAX + 1
            if self._packet_id not in self._taken and self._packet_id not in self._unanswered:
                return self._packet_id

    def _note_room(self) -> None:
        if len(self._taken) < PENDING_MAX and not self._is_paused and not self._is_held:
            self.drained.set()
        else:
            self.drained.clear()

    def _fail(self, why: str) -> None:
        if self._is_open:
            self.end()
            self._owner.on_link_lost(why)
            if not self.ready.done():
                self.ready.cancel()

    def _lose(self) -> None:
        self._fail(self.end_reason or "the door closed the connection")

    def _close_handler(self) -> None:
        handler, self._handler = self._handler, None
        if handler is not None:
            handler.on_closed(self._begin_read(0))
