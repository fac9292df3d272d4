"""What groups did not take because their place began behind it, or was sent on: noted, so that it can be told later.

Source: docs/operations.md, "Where a message went".
"""

from __future__ import annotations

from core.broker import Broker
from gateway.rocketmq.topic_table import OWN_GROUPS

BEGAN_BEHIND = "began_behind"
BEGAN_UNKNOWN = "began_unknown"
PASSED_OVER = "passed_over"


def watch_first_places(broker: Broker) -> None:
    """Have it noted where groups are when they commit an offset of a queue for the first time.

    A group that pulls took some of what is before, how much it alone knows.
    """
    broker.consumer_offsets.on_first = lambda group, key, offset: _note_first(broker, group, key, offset)


def _note_first(broker: Broker, group: bytes, key: bytes, offset: int) -> None:
    if not group.startswith(OWN_GROUPS):
        broker.lasting_endings.note_run((key, group), 0, offset, BEGAN_UNKNOWN, 0)


def note_beginning(broker: Broker, group: bytes, key: bytes, offset: int) -> None:
    """Note, before a group takes from a queue for the first time, that it begins behind what is before an offset."""
    broker.lasting_endings.note_run((key, group), 0, offset, BEGAN_BEHIND, 0)


def commit_by(broker: Broker, group: bytes, key: bytes, offset: int, member: bytes) -> None:
    """Set the offset that a group goes on at, as a member says it, and note what that member acknowledged by it.

    Args:
        broker: Where the queue is.
        group: The group.
        key: The queue.
        offset: The next one that the group wants.
        member: The client, empty where it is not known.

    Raises:
        DiskFullError: No room for one more group and queue.
    """
    before, queue_ref = broker.consumer_offsets.get(group, key), broker.find_queue(key)
    broker.consumer_offsets.commit(group, key, offset)
    if before is not None and before < offset and queue_ref >= 0:
        acknowledgers = broker.pop.acknowledgers
        end = min(offset, broker.max_offset(queue_ref))
        acknowledgers.note_run((key, group), before, end, acknowledgers.code_of(member))


def note_moved(broker: Broker, group: bytes, key: bytes, offset: int, now_ms: int) -> None:
    """Note, before the place of a group is set, what it passes over, or may be given again."""
    before = broker.consumer_offsets.get(group, key)
    if before is None:
        note_beginning(broker, group, key, offset)
    elif before < offset:
        broker.lasting_endings.note_run((key, group), before, offset, PASSED_OVER, now_ms)
    else:
        broker.lasting_endings.trim((key, group), offset)
