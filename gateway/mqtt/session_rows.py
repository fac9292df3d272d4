"""How sessions, their subscriptions and wills are written down.

Source: docs/storage-format.md, "Definitions".
"""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import NamedTuple

from core.row_format import RowFormat
from gateway.mqtt.eras import Eras, pack_eras, parse_eras
from gateway.mqtt.packets import Will
from gateway.mqtt.properties import NO_PROPERTIES, OF_WILL, decode_properties, encode_properties
from gateway.mqtt.session import NEVER, NO_SLOT

OF_MQTT_5 = 0x40  # beside the options: its client spoke MQTT 5, so that it may have said which packets are too large
REPLAY_OVER = 0x80  # beside the options: a replay reads its filter's own queue
_SUBSCRIPTION = struct.Struct(">Bqqq")  # granted QoS, slots
_OPTIONS = struct.Struct(">BI")  # what MQTT 5 adds: options, subscription identifier
_FIRST = struct.Struct(">q")  # where it began in its queue
_SLOT = struct.Struct(">q")
_COUNT = struct.Struct(">I")
_RUN = struct.Struct(">qI")  # messages at QoS 1 under way that follow each other in a queue: first offset, count
UNKNOWN_FIRST = -1  # of a row of before that was written down
_SESSION = struct.Struct(">qBI")  # when its connection went, 0 while it has one; version; how long it lives then
_SESSION_VERSION = 2  # the owner's name follows
_SESSION_1 = struct.Struct(">qB")  # without how long it lives
_OLD_SESSION = struct.Struct(">q")  # without an owner
_WILL = struct.Struct(">BHHH")  # QoS and retain flag, sizes of topic, user and host
_WILL_RETAIN = 0x04
_WILL_PROPERTIES = 0x08  # those of MQTT 5 are there, before the body
_WILL_DUE = 0x10  # when it is published stands before the body, and before those
_WILL_LOGIN = 0x20  # a login stands behind the host, with its size before it
_WILL_SLOT = 0x40  # a slot stands before the topic
_DUE = struct.Struct(">q")
_LOGIN = struct.Struct(">I")
WILL_ROWS = RowFormat(3)  # since 2 there may be a login, since 3 a slot


class SessionRow(NamedTuple):
    """What is written down of a session: since when it is idle, 0 for not; whose it is, None where that is not said."""

    idle_since_ms: int
    owner: bytes | None
    expiry_s: int


class SubscriptionRow(NamedTuple):
    """What is written down of a subscription."""

    qos: int
    floor_slot: int
    sent_slot: int
    retained_slot: int
    options: int  # as in SUBSCRIBE, OF_MQTT_5 and REPLAY_OVER
    identifier: int
    first_offset: int = UNKNOWN_FIRST  # where it began in its queue, as far as that is said
    eras: Eras = ()  # what it was before, the oldest first


class EndedRow(NamedTuple):
    """What is written down of a subscription that ended while messages were under way."""

    topic_filter: bytes
    was: SubscriptionRow
    owed: list[int]  # queue offsets at QoS 1


class StoredWill:
    """A will and whose it is.

    `login` says how the client came in, see gateway/auth/left_logins.py; `due_ms` is when it is published, 0 while the
    client is connected; `slot` is that of the place which says whether it is over, NO_SLOT where it has none.
    """

    __slots__ = ("client_id", "due_ms", "host", "login", "slot", "user", "will")

    def __init__(
        self, client_id: bytes, user: bytes, host: bytes, will: Will, due_ms: int = 0, *, login: bytes = b""
    ) -> None:
        self.client_id = client_id
        self.user = user
        self.host = host
        self.will = will
        self.login = login
        self.due_ms = due_ms
        self.slot = NO_SLOT


def pack_session(idle_since_ms: int, owner: bytes, expiry_s: int) -> bytes:
    """Return the row of a session, by its client identifier."""
    return _SESSION.pack(idle_since_ms, _SESSION_VERSION, expiry_s) + owner


def parse_session(row: bytes) -> SessionRow:
    """Return what the row of a session says, of this version or one before."""
    if len(row) == _OLD_SESSION.size:
        return SessionRow(int(_OLD_SESSION.unpack(row)[0]), None, NEVER)
    since_ms, version = _SESSION_1.unpack_from(row)
    if version == 1:
        return SessionRow(int(since_ms), row[_SESSION_1.size :], NEVER)
    return SessionRow(int(since_ms), row[_SESSION.size :], int(_SESSION.unpack_from(row)[2]))


def subscription_key(client_id: bytes, topic_filter: bytes) -> bytes:
    """Return the key of a subscription's row: no client identifier has a zero byte."""
    return b"%b\x00%b" % (client_id, topic_filter)


def pack_subscription(row: SubscriptionRow) -> bytes:
    """Return the row of a subscription, by its key."""
    slots = (row.floor_slot, row.sent_slot, row.retained_slot)
    first = _FIRST.pack(row.first_offset)
    options = _OPTIONS.pack(row.options, row.identifier)
    return _SUBSCRIPTION.pack(row.qos, *slots) + options + first + pack_eras(row.eras)


def parse_subscription(row: bytes) -> SubscriptionRow:
    """Return what the row of a subscription says, also one of a version before."""
    size = _SUBSCRIPTION.size
    options, identifier = _OPTIONS.unpack_from(row, size) if len(row) > size else (0, 0)
    qos, floor_slot, sent_slot, retained_slot = _SUBSCRIPTION.unpack_from(row)
    size += _OPTIONS.size
    first_offset = int(_FIRST.unpack_from(row, size)[0]) if len(row) > size else UNKNOWN_FIRST
    eras = parse_eras(row[size + _FIRST.size :])
    return SubscriptionRow(qos, floor_slot, sent_slot, retained_slot, options, identifier, first_offset, eras)


def ended_key(client_id: bytes, slot: int) -> bytes:
    """Return the key of the row of a subscription that ended, by its first slot."""
    return b"%b\x00%b" % (client_id, _SLOT.pack(slot))


def pack_ended(topic_filter: bytes, row: SubscriptionRow, owed: list[int]) -> bytes:
    """Return the row of a subscription that ended while messages were under way.

    Args:
        topic_filter: What it was to.
        row: What its own row said.
        owed: The queue offsets of those at QoS 1; the journal of QoS 2 has the others.
    """
    runs: list[list[int]] = []
    for offset in sorted(owed):
        if runs and sum(runs[-1]) == offset:
            runs[-1][1] += 1
        else:
            runs.append([offset, 1])
    packed = b"".join(_RUN.pack(*run) for run in runs)
    return pack_subscription(row._replace(eras=())) + _COUNT.pack(len(runs)) + packed + topic_filter


def parse_ended(row: bytes) -> EndedRow:
    """Return what the row of a subscription that ended says."""
    at = _SUBSCRIPTION.size + _OPTIONS.size + _FIRST.size
    was = parse_subscription(row[:at])
    (count,) = _COUNT.unpack_from(row, at)
    end = at + _COUNT.size + count * _RUN.size
    runs = _RUN.iter_unpack(row[at + _COUNT.size : end])
    return EndedRow(row[end:], was, [offset for first, size in runs for offset in range(first, first + size)])


def pack_will(stored: StoredWill) -> bytes:
    """Return the row of a will, by its client identifier."""
    will = stored.will
    flags = will.qos | _WILL_PROPERTIES | (_WILL_RETAIN if will.is_retained else 0)
    flags |= (_WILL_DUE if stored.due_ms else 0) | (_WILL_LOGIN if stored.login else 0)
    flags |= 0 if stored.slot == NO_SLOT else _WILL_SLOT
    head = _WILL.pack(flags, len(will.topic), len(stored.user), len(stored.host))
    if stored.slot != NO_SLOT:
        head += _SLOT.pack(stored.slot)
    properties = encode_properties(will.properties.items())
    if stored.due_ms:
        properties = _DUE.pack(stored.due_ms) + properties
    if stored.login:
        properties = _LOGIN.pack(len(stored.login)) + stored.login + properties
    return head + will.topic + stored.user + stored.host + properties + will.body


def parse_will(client_id: bytes, row: bytes) -> StoredWill:
    """Return what the row of a client's will says."""
    flags, *sizes = _WILL.unpack_from(row)
    ends = [_WILL.size + (_SLOT.size if flags & _WILL_SLOT else 0)]
    for size in sizes:
        ends.append(ends[-1] + size)
    topic, user, host = (row[start:end] for start, end in pairwise(ends))
    properties, body_at, due_ms, login = NO_PROPERTIES, ends[-1], 0, b""
    if flags & _WILL_LOGIN:
        login_at = body_at + _LOGIN.size
        body_at = login_at + int(_LOGIN.unpack_from(row, body_at)[0])
        login = row[login_at:body_at]
    if flags & _WILL_DUE:
        (due_ms,) = _DUE.unpack_from(row, body_at)
        body_at += _DUE.size
    if flags & _WILL_PROPERTIES:
        properties, body_at = decode_properties(row, body_at, OF_WILL)
    will = Will(topic, row[body_at:], flags & 3, bool(flags & _WILL_RETAIN), properties)
    stored = StoredWill(client_id, user, host, will, due_ms, login=login)
    stored.slot = slot_of_will(row)
    return stored


def slot_of_will(row: bytes) -> int:
    """Return the slot that the row of a will names, NO_SLOT where it names none."""
    return int(_SLOT.unpack_from(row, _WILL.size)[0]) if row[0] & _WILL_SLOT else NO_SLOT
