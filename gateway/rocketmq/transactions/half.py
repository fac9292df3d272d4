"""Half messages and the records that say which of them are done with, as they lie in the log.

A half message's record names in REAL_TOPIC and REAL_QID where it goes when its transaction is committed.

Source: docs/protocols/rocketmq.md, "Transactions".
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from core.message import Route
from core.properties import CRC, TAGS, TOPIC, UNIQ_KEY, WAITING_FOR, decode_properties, encode_properties
from gateway.rocketmq.delay import LATER_DISPATCH, REAL_QUEUE, REAL_TOPIC, waiting_prefix
from gateway.rocketmq.topic_table import HALF_TOPIC, OP_TOPIC, queue_key
from lmq.remoting.message_codec import MAGIC, SYS_BORN_IPV6, SYS_STORE_IPV6

HALF_KEY = queue_key(HALF_TOPIC, 0)
OP_KEY = queue_key(OP_TOPIC, 0)
PREPARED = b"TRAN_MSG"
PRODUCER_GROUP = b"PGROUP"
IMMUNITY = b"CHECK_IMMUNITY_TIME_IN_SECONDS"
IMMUNITY_MAX_MS = 86_400_000  # a producer may hold a part of the log for no longer
DONE_TAG = b"d"
ENDED_AS = b"LMQ_ENDED"  # of such a record: how each of its half messages ended, a letter each
DONE_BYTES_MAX = 4_096  # of one such record's body, as official brokers write them
DONE_COUNT_MAX = DONE_BYTES_MAX // 20  # an offset has 19 digits at most, and a comma
OURS = (PREPARED, REAL_TOPIC, REAL_QUEUE, LATER_DISPATCH, WAITING_FOR, CRC)
_DIGITS_MAX = 9  # any number of so many fits into Java's int
_OFFSET_DIGITS_MAX = 18  # any number of so many fits into 64 bits
_U16 = struct.Struct(">H")
_U32 = struct.Struct(">I")
_QUEUE_AT = 12  # in a record
_HOST_AT = 48


class Router(Protocol):
    """What makes routes: the broker."""

    def route_rocketmq(self, topic: bytes, queue_id: int, dispatch: Sequence[bytes], prefix: bytes = b"") -> Route:
        """Return a route to a topic's queue and to light queues."""


def half_route(
    router: Router, topic: bytes, queue_id: int, names: Sequence[bytes], *, space_topic: bytes = b""
) -> Route:
    """Return the route of half messages that are to go to a topic's queue and light queues, or into the topic space."""
    prefix = waiting_prefix(topic, queue_id, names)
    if space_topic:
        prefix = encode_properties([(WAITING_FOR, space_topic)]) + prefix
    return router.route_rocketmq(HALF_TOPIC, 0, (), prefix)


class Half(NamedTuple):
    """What a half message's record says."""

    topic: bytes  # where the message goes; in the topic space where `space_topic` is not empty
    queue_id: int
    names: tuple[bytes, ...]
    space_topic: bytes
    group: bytes
    key: bytes
    immunity_ms: int  # nobody is asked before; -1 where the message does not say
    properties: bytes  # of the message, when it is committed


def read_half(properties: bytes) -> Half | None:
    """Return what the properties of a half message's record say; None where they name no topic."""
    said = decode_properties(properties)
    topic, queue_id = said.get(REAL_TOPIC, b""), said.get(REAL_QUEUE, b"")
    if not topic or not queue_id.isdigit() or len(queue_id) > _DIGITS_MAX:
        return None
    names = said.get(LATER_DISPATCH, b"")
    seconds = said.get(IMMUNITY, b"")
    immunity_ms = -1
    if seconds.isdigit() and len(seconds) <= _DIGITS_MAX:
        immunity_ms = min(1_000 * int(seconds), IMMUNITY_MAX_MS)
    return Half(
        topic=topic,
        queue_id=int(queue_id),
        names=tuple(names.split(b",")) if names else (),
        space_topic=said.get(WAITING_FOR, b""),
        group=said.get(PRODUCER_GROUP, b""),
        key=said.get(UNIQ_KEY, b""),
        immunity_ms=immunity_ms,
        properties=encode_properties((name, value) for name, value in said.items() if name not in OURS),
    )


# Records that say which half messages are done with


def encode_done(offsets: Iterable[int]) -> bytes:
    """Return the body of a record that says that the half messages of these numbers are done with."""
    return b"".join(b"%d," % offset for offset in offsets)


def done_properties(letters: bytes) -> bytes:
    """Return the properties of such a record.

    Args:
        letters: How the half messages ended that its body names, in the same order.
    """
    return encode_properties([(TAGS, DONE_TAG), (ENDED_AS, letters)])


def decode_done(body: bytes) -> Iterator[int]:
    """Give the numbers that such a record's body names; what is none is passed by."""
    for text in body.split(b","):
        if text.isdigit() and len(text) <= _OFFSET_DIGITS_MAX:
            yield int(text)


def find_letter(body: bytes, properties: bytes, offset: int) -> bytes | None:
    """Return how a half message ended by a record that names it: a letter, empty where the record does not say.

    None: it does not name it. Gateways before this one, and official brokers, write no letters.
    """
    named = list(decode_done(body))
    if offset not in named:
        return None
    letters = decode_properties(properties).get(ENDED_AS, b"")
    at = named.index(offset)
    return letters[at : at + 1] if len(letters) == len(named) else b""


# What a producer is shown that is asked


def show_half(record: bytes, half: Half) -> bytes:
    """Return the record of a half message as its producer knows it: on its own topic, in its own queue."""
    sys_flag = _U32.unpack_from(record, 36)[0]
    body_at = _HOST_AT + 8 + 8 + 8 + 4 + 8
    body_at += 12 * (bool(sys_flag & SYS_BORN_IPV6) + bool(sys_flag & SYS_STORE_IPV6))
    body_end = body_at + 4 + _U32.unpack_from(record, body_at)[0]
    topic = half.topic
    said = half.properties + encode_properties([(PREPARED, b"true")])
    if half.space_topic:
        said += encode_properties([(TOPIC, half.space_topic)])
    tail = bytes([len(topic)]) + topic + _U16.pack(len(said)) + said
    out = bytearray(record[:body_end])
    _U32.pack_into(out, 0, body_end + len(tail))
    _U32.pack_into(out, 4, MAGIC)
    _U32.pack_into(out, _QUEUE_AT, half.queue_id)
    return bytes(out) + tail
