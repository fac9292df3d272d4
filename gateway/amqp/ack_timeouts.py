"""Consumers that leave a delivery unacknowledged for too long lose their channel, and others get its messages.

No delivery has a time of its own. A channel with unacknowledged ones gets a mark now and then, which says up to which
tag was delivered by when; the oldest unacknowledged tag lies below one of the marks. Some thirty marks span the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from core.queues.terms import NO_LIMIT
from gateway.amqp.channel import Channel
from gateway.amqp.consumer import Consumer, Slot
from gateway.amqp.errors import AmqpError
from gateway.amqp.reply_codes import ReplyCode
from gateway.amqp.shared_queue import SharedQueue

CHECK_INTERVAL_MS = 1_000  # a channel is closed so much late at most; the default time is 30 minutes
MARKS = 32  # in the time that a consumer has
STEP_CHANNELS = 64  # looked at in one step

Overdue = Callable[[Channel, AmqpError], None]


def find_overdue(channel: Channel, default_ms: int, now_ms: int) -> AmqpError | None:
    """Return the error of a channel whose oldest delivery is unacknowledged for too long, else None.

    Args:
        channel: It.
        default_ms: The time that consumers have where neither they nor their queues say another; 0 for no end.
        now_ms: The time.
    """
    ring = channel.unacked
    if not ring.live:
        channel.ack_marks = None
        return None
    oldest = ring.oldest_tag()
    timeout_ms = _timeout_of(channel.slots[ring.slot_of(oldest)], default_ms)
    if timeout_ms <= 0:
        channel.ack_marks = None
        return None
    marks: list[tuple[int, int]] = [mark for mark in channel.ack_marks or () if mark[1] > oldest]
    if not marks or (marks[-1][1] < ring.next_tag and now_ms - marks[-1][0] >= timeout_ms // MARKS):
        marks.append((now_ms, ring.next_tag))
    channel.ack_marks = marks
    if now_ms - marks[0][0] < timeout_ms:
        return None
    reason = (
        f"delivery acknowledgement on channel {channel.number} timed out. Timeout value used: {timeout_ms} ms. "
        "This timeout value can be configured, see consumers doc guide to learn more"
    )
    return AmqpError(ReplyCode.PRECONDITION_FAILED, reason)


def check_all(channels: Iterable[tuple[Channel, Overdue] | None], default_ms: int, now_ms: int) -> Iterator[None]:
    """Close the channels that are overdue, in steps; None stands for a look that found none to be asked."""
    for i, found in enumerate(channels):
        if i % STEP_CHANNELS == STEP_CHANNELS - 1:
            yield
        if found is None:
            continue
        channel, close = found
        error = None if channel.is_closing else find_overdue(channel, default_ms, now_ms)
        if error is not None:
            close(channel, error)


def _timeout_of(slot: Slot, default_ms: int) -> int:
    return find_timeout(slot.queue, slot.consumer, default_ms)


def find_timeout(queue: SharedQueue, consumer: Consumer | None, default_ms: int) -> int:
    """Return what the consumer says, else its queue, else the settings: milliseconds, 0 for no end."""
    if consumer is not None and consumer.timeout_ms != NO_LIMIT:
        return consumer.timeout_ms
    of_queue = queue.terms.consumer_timeout_ms
    return default_ms if of_queue == NO_LIMIT else of_queue
