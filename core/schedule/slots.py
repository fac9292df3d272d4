"""Where a message waits: queues of one topic, a minute each for what is near, a day each for what is far off.

The queues are used over and over, as rings: a name serves again when its time has long passed. A waiting record's last
property says to the millisecond when it is due.

Source: docs/storage-format.md, "Waiting messages".
"""

from __future__ import annotations

from collections.abc import Iterator

from core.engine import Engine
from core.properties import CRC, DUE

TIMER_TOPIC = b"rmq_sys_wheel_timer"  # as official brokers call it
NEAR_MS = 60_000  # a minute: what is due in one is in memory, and NEAR_AHEAD_MS of them are some 2,000 queues
NEAR_SLOTS = 2_048  # 34 hours
FAR_MS = 86_400_000  # a day: 400 queues reach further than a year
FAR_SLOTS = 512  # days
NEAR_AHEAD_MS = 32 * 3_600_000  # what is due within this time waits in a minute
ROLL_AHEAD_MS = NEAR_AHEAD_MS - FAR_MS  # a day is spread over its minutes so long before it begins
DELAY_MAX_MS = 400 * FAR_MS  # less than the ring of days, so that no two of them meet in a queue
DUE_MAX_MS = 10**13 - 1  # 13 digits, as a record says it: the year 2286

_DUE_NAME = DUE + b"\x01"
_DIGITS = 13  # as a record says it: DUE_MAX_MS has no more
_DUE_BYTES = len(_DUE_NAME) + _DIGITS + 1
_CRC_NAME = CRC + b"\x01"


def queue_of(due_ms: int, now_ms: int) -> int:
    """Return the number of the queue in which a message waits that is due then."""
    if due_ms - now_ms <= NEAR_AHEAD_MS:
        return near_queue(due_ms // NEAR_MS)
    return NEAR_SLOTS + due_ms // FAR_MS % FAR_SLOTS


def near_queue(minute: int) -> int:
    """Return the number of the queue of a minute, counted from 1970."""
    return minute % NEAR_SLOTS


def day_of(queue_id: int, since_ms: int) -> int:
    """Return which day a far queue stands for: the first of its days that is not before the day before `since_ms`."""
    first = since_ms // FAR_MS - 1
    return first + (queue_id - NEAR_SLOTS - first) % FAR_SLOTS


def queue_key(queue_id: int) -> bytes:
    """Return the key of a queue of the timer's topic."""
    return b"%b/%d" % (TIMER_TOPIC, queue_id)


def find_queues(engine: Engine) -> Iterator[int]:
    """Give the numbers of the timer's queues that there are, in any order."""
    count = engine.queue_count()
    if count > NEAR_SLOTS + FAR_SLOTS:
        yield from (
            queue_id for queue_id in range(NEAR_SLOTS + FAR_SLOTS) if engine.find_queue(queue_key(queue_id)) >= 0
        )
        return
    for queue_ref in range(count):  # a small folder has fewer queues than the timer may have
        topic, _, number = engine.queue_key(queue_ref).rpartition(b"/")
        if topic == TIMER_TOPIC and number.isdigit() and int(number) < NEAR_SLOTS + FAR_SLOTS:
            yield int(number)


def encode_due(due_ms: int) -> bytes:
    """Return the property that ends the properties of a message that waits."""
    return b"%b%013d\x02" % (_DUE_NAME, due_ms)


def read_due(properties: bytes) -> int:
    """Return when a waiting message is due by its encoded properties, -1 where they do not say."""
    at = properties.rfind(_DUE_NAME)
    digits = properties[at + len(_DUE_NAME) : at + _DUE_BYTES - 1]
    return int(digits) if at >= 0 and len(digits) == _DIGITS and digits.isdigit() else -1


def strip_due(properties: bytes) -> bytes:
    """Return the properties without what makes a message wait, and without the checksum of its record."""
    at = properties.rfind(_DUE_NAME)
    return strip_crc(properties) if at < 0 else properties[:at] + strip_crc(properties[at + _DUE_BYTES :])


def strip_crc(properties: bytes) -> bytes:
    """Return the properties without the checksum of their record."""
    at = properties.rfind(_CRC_NAME)
    return properties if at < 0 else properties[:at]
