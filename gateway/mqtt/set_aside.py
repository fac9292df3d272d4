"""What a publisher sends while it is held, as the disk is low on room: set aside, but for pings and acknowledgements.

MQTT 3.1 and 3.1.1 have no word for "wait". So what is published waits here, unanswered and in its order, and pings are
answered meanwhile. Where that gets too much, messages at QoS 0 are dropped, and with any other packet no more is read.
"""

from __future__ import annotations

from gateway.mqtt.packets import DISCONNECT, PINGREQ, PUBACK, PUBCOMP, PUBLISH, PUBREC

KEPT_BYTES_MAX = 64 * 1024  # of one connection: more than most clients have in flight
ALL_BYTES_MAX = 32 * 1024 * 1024  # of all connections of a door: 512 that fill KEPT_BYTES_MAX
_QOS_BITS = 0x06
_PASSED = frozenset((PINGREQ, PUBACK, PUBREC, PUBCOMP))
_PASSED_BYTES_MAX = 4  # a longer one breaks a rule


class AsideRoom:
    """How much all connections of a door have set aside."""

    __slots__ = ("used_bytes",)

    def __init__(self) -> None:
        self.used_bytes = 0


class SetAside:
    """The packets of one connection of MQTT 3.1 or 3.1.1, from the beginning of one on.

    `is_full`: no more is to be read. `is_over`: nothing is set aside any more, because the client leaves or breaks a
    rule, or may go on. `dropped_count` is the number of messages at QoS 0 that were dropped.

    Args:
        room: What all connections have.
        packet_bytes_max: No packet is larger.
    """

    __slots__ = (
        "_head",
        "_is_dropping",
        "_kept",
        "_left",
        "_packet_bytes_max",
        "_room",
        "dropped_count",
        "is_full",
        "is_over",
    )

    def __init__(self, room: AsideRoom, packet_bytes_max: int) -> None:
        self.is_full = False
        self.is_over = False
        self.dropped_count = 0
        self._room = room
        self._packet_bytes_max = packet_bytes_max
        self._kept = bytearray()
        self._head = b""  # the beginning of a packet that is neither kept nor dropped yet
        self._left = 0  # bytes to come of the packet before
        self._is_dropping = False  # that packet

    @property
    def has_left(self) -> bool:
        """Whether something is set aside, or is still to be dropped."""
        return bool(self._kept or self._head or (self._is_dropping and self._left))

    def take(self, data: bytes) -> bytes:
        """Take what came; return what is to be handled now: whole pings and acknowledgements, or all where it is over.

        What comes though it is full comes from a client that has left.
        """
        if self.is_over:
            return data[self._go_on(data) :]
        if self.is_full:
            return self.give_back() + data
        data, self._head = self._head + data, b""
        passed = bytearray()
        pos, end = self._go_on(data), len(data)
        while pos < end and not self.is_full:
            size, kind = size_at(data, pos), data[pos] >> 4
            is_bad = not 0 <= size <= self._packet_bytes_max or (kind in _PASSED and size > _PASSED_BYTES_MAX)
            if is_bad or kind == DISCONNECT:
                return bytes(passed) + self.give_back() + data[pos:]
            if not size or (kind in _PASSED and pos + size > end):
                self._head = data[pos:]
                return bytes(passed)
            if kind in _PASSED:
                passed += data[pos : pos + size]
                pos += size
            else:
                self._choose(data[pos], size)
                pos += self._go_on(data[pos : pos + size])
        if pos < end:
            self._keep(data[pos:])
        return bytes(passed)

    def _choose(self, first: int, size: int) -> None:
        """Choose what becomes of a packet that begins with `first`."""
        room_bytes = min(KEPT_BYTES_MAX - len(self._kept), ALL_BYTES_MAX - self._room.used_bytes)
        self._left = size
        self._is_dropping = size > room_bytes and first >> 4 == PUBLISH and not first & _QOS_BITS
        self.dropped_count += self._is_dropping
        self.is_full = size > room_bytes and not self._is_dropping

    def _go_on(self, data: bytes) -> int:
        """Take what there is of the packet before; return how much that is."""
        part = data[: self._left]
        self._left -= len(part)
        if not self._is_dropping:
            self._keep(part)
        return len(part)

    def _keep(self, data: bytes) -> None:
        self._kept += data
        self._room.used_bytes += len(data)

    def give_back(self) -> bytes:
        """Set nothing aside any more, and return what was; `take` still drops what is left of a dropped message."""
        self.is_over = True
        self.is_full = False
        self._room.used_bytes -= len(self._kept)
        kept = bytes(self._kept) + self._head
        self._kept.clear()
        self._head = b""
        self._left = self._left if self._is_dropping else 0
        return kept


def size_at(data: bytes, pos: int) -> int:
    """Return the size of the packet at `pos`, 0 where its length is not all there, -1 where that is none."""
    size = 0
    for i in range(4):
        at = pos + 1 + i
        if at >= len(data):
            return 0
        size |= (data[at] & 0x7F) << 7 * i
        if not data[at] & 0x80:
            return at + 1 - pos + size
    return -1
