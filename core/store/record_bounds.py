"""How large records become at most, before they are written: what does not fit is refused without a trace.

Offsets in light queues count as long as they may be, 20 digits, where that leaves a record below its limit.
"""

from __future__ import annotations

from core.errors import MessageTooLargeError
from core.message import DispatchSet, PublishBatch, Route
from core.properties import DISPATCH_SET, PROPERTIES_BYTES_MAX
from core.reserved import DISPATCH_SET_TOPIC
from core.store.dispatch_set import SET_HEADER_BYTES
from core.store.head_index import HeadIndex
from core.store.layout import BLANK_BYTES, CRC_PROPERTY_BYTES, RECORD_BYTES_MIN, SYS_NOT_DISPATCHED

HEAD_BYTES = RECORD_BYTES_MIN + 1 + 24  # at most: a topic length of two bytes, two IPv6 hosts
SET_NAME = DISPATCH_SET + b"\x01"

_HEAD_BYTES = HEAD_BYTES
_SET_RECORD_BYTES = HEAD_BYTES + len(DISPATCH_SET_TOPIC) + SET_HEADER_BYTES + CRC_PROPERTY_BYTES + BLANK_BYTES
_SET_NAME_BYTES = len(SET_NAME)
_PROPERTIES_BYTES_MAX = PROPERTIES_BYTES_MAX
_CRC_BYTES = CRC_PROPERTY_BYTES
_BLANK_BYTES = BLANK_BYTES
_NOT_DISPATCHED = SYS_NOT_DISPATCHED
_DECIMAL_BYTES = 20  # more than any offset has: 64 bits are 19 digits
_VARINT_BYTES = 10  # of an offset at most: 64 bits, 7 in each


def bound_record(batch: PublishBatch, i: int, route: Route, count: int, head: HeadIndex, ahead: int) -> int:
    """Return how many bytes the record of message `i` takes at most, with the blank behind it.

    Args:
        batch: Has the message.
        i: Which it is.
        route: Its route.
        count: How many light queues it goes to.
        head: Knows the next offsets of these.
        ahead: So many messages may come to them before it.

    Raises:
        MessageTooLargeError: No record can hold its properties.
    """
    body_size = batch.body_end[i] - batch.body_start[i]
    extra_size = batch.extra_end[i] - batch.extra_start[i]
    dispatch = route.dispatch
    properties_size = len(route.prefix) + len(batch.origin) + extra_size + 1 + _CRC_BYTES
    if count > 0:
        if dispatch.is_interned:
            properties_size += _SET_NAME_BYTES + _DECIMAL_BYTES + 1
        else:
            properties_size += len(dispatch.text) + (_DECIMAL_BYTES + 1) * count
    if properties_size > _PROPERTIES_BYTES_MAX:
        properties_size = _exact_size(properties_size, dispatch, count, head, ahead)
    return _HEAD_BYTES + body_size + len(route.topic) + properties_size + _BLANK_BYTES


def _exact_size(properties_size: int, dispatch: DispatchSet, count: int, head: HeadIndex, ahead: int) -> int:
    """Return the size of the properties with offsets as long as they are, where the bound was too large."""
    if count > 0 and not dispatch.is_interned:
        for k in range(count):
            value = head.next_offset(dispatch.queue_refs[k]) + ahead
            properties_size -= _DECIMAL_BYTES - 1
            while value > 9:
                value //= 10
                properties_size += 1
    if properties_size > _PROPERTIES_BYTES_MAX:
        raise MessageTooLargeError("properties", properties_size, _PROPERTIES_BYTES_MAX)
    return properties_size


def count_entries(batch: PublishBatch) -> int:
    """Return how many entries the messages of a batch make in queues."""
    entries = 0
    for i in range(batch.count):
        route = batch.routes[batch.route_index[i]]
        if route is not None and (batch.sys_flag[i] & _NOT_DISPATCHED) == 0:
            entries += 1 + route.dispatch.count
    return entries


def bound_batch(batch: PublishBatch, head: HeadIndex, set_again_bytes: int, limit: int) -> int:
    """Return how many bytes all records of a batch take at most, with those of sets.

    Args:
        batch: The messages.
        head: Knows the next offsets of their queues.
        set_again_bytes: After so many bytes a set is written again, no sooner.
        limit: More than so many need not be told exactly.

    Raises:
        MessageTooLargeError: No record can hold the properties of one.
    """
    need = 0
    each = 0  # what sets take where each message writes its own
    for i in range(batch.count):
        route = batch.routes[batch.route_index[i]]
        if route is None:
            continue
        count = route.dispatch.count if (batch.sys_flag[i] & _NOT_DISPATCHED) == 0 else 0
        need += bound_record(batch, i, route, count, head, batch.count)
        if count > 0 and route.dispatch.is_interned:
            each += _bound_set(route.dispatch)
    if each == 0:
        return need
    once = 0  # what they take where each is written once
    for route in batch.routes:
        if route is not None and route.dispatch.is_interned:
            once += _bound_set(route.dispatch)
    total, more = 0, once
    while more != total and more <= min(each, limit):
        total = more
        more = once * (1 + (need + total) // set_again_bytes)
    return need + min(each, more)


def _bound_set(dispatch: DispatchSet) -> int:
    """Return how many bytes the record of an interned set takes at most."""
    return _SET_RECORD_BYTES + len(dispatch.text) + _VARINT_BYTES * dispatch.count
