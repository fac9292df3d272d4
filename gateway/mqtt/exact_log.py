"""What the log says of messages at QoS 2: how many there are, of which durable sessions, under which identifiers.

The record of a message that a durable session's client published has its packet identifier in the upper half of
`sysFlag`, which RocketMQ does not use: it costs no byte and no write.
"""

from __future__ import annotations

from core import octets
from core.broker import Broker
from core.message import FLAG_MARK, FLAG_MARK_MASK, FLAG_QOS_MASK, StoredBatch
from core.properties import CLIENT, WAITING_AT, decode_properties

_EXACT_MASK = FLAG_MARK_MASK | FLAG_QOS_MASK
_EXACT = FLAG_MARK | 2
_TAG_SHIFT = 16
_TAG_MASK = 0xFFFF
_SIGN = 0x8000


def tag_exact(packet_id: int) -> int:
    """Return the sysFlag, a signed number, of a record that says under which packet identifier its message came."""
    return (packet_id - 2 * (packet_id & _SIGN)) << _TAG_SHIFT


class ExactLog:
    """The log from a place on, read at the start."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._found: list[tuple[bytes, int, int]] = []  # client, packet identifier, place

    def count_from(self, place: int) -> int:
        """Return how many messages that came at QoS 2 the log holds from a place on."""
        return self._broker.replay_from(place, _count)

    def find_from(self, place: int) -> list[tuple[bytes, int, int]]:
        """Return what durable sessions' clients published from a place on, in order: each with its own place."""
        self._found = []
        self._broker.replay_from(place, self._find)
        return self._found

    def _find(self, batch: StoredBatch) -> int:
        for i in range(batch.count):
            packet_id = batch.sys_flag[i] >> _TAG_SHIFT & _TAG_MASK
            if packet_id and batch.flag[i] & _EXACT_MASK == _EXACT:
                properties = decode_properties(batch.buf[batch.properties_start[i] : batch.properties_end[i]])
                self._found.append((properties.get(CLIENT, b""), packet_id, batch.physical_offset[i]))
        return batch.count


def _count(batch: StoredBatch) -> int:
    """Return how many messages came at QoS 2; a copy that waits beside its message, and before it, is none."""
    return sum(batch.flag[i] & _EXACT_MASK == _EXACT and not _waits_beside(batch, i) for i in range(batch.count))


def _waits_beside(batch: StoredBatch, i: int) -> bool:
    start, end = batch.properties_start[i], batch.properties_end[i]
    properties = octets.read_bytes(batch.buf, start, end)
    return WAITING_AT in properties and WAITING_AT in decode_properties(properties)
