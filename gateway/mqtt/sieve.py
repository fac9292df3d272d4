"""Takes out of a batch what its subscription is not sent, and finds what in a session's window it may not have."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from core.lmq.expiry import move
from core.message import FLAG_MARK, FLAG_MARK_MASK, FLAG_QOS_MASK, StoredBatch
from core.properties import encode_origin
from gateway.auth.permissions import Permissions
from gateway.mqtt.inflight import InflightWindow
from gateway.mqtt.packets import LEVEL_5, NO_LOCAL, RETAIN_AS_PUBLISHED
from gateway.mqtt.properties import write_varint
from gateway.mqtt.publish_block import BlockWriter, block_bytes_max
from gateway.mqtt.publish_encoder import Form
from gateway.mqtt.replay import is_of
from gateway.mqtt.session import Session, Subscription
from gateway.mqtt.topics import plain_filter

TOO_LARGE = "too_large_for_subscriber"  # why a message is not sent: what counters and endings call it
NOT_PERMITTED = "not_permitted"
_PROTOCOL = b"mqtt"


def leave_out_sent(batch: StoredBatch, subscription: Subscription) -> None:
    """Take out of `batch` what was sent at QoS 2 before: it is in the window, or done."""
    done = subscription.done_before
    if done:
        keep(batch, lambda i: batch.queue_offset[i] not in done)


def keep_wanted(batch: StoredBatch, subscription: Subscription) -> list[int]:
    """Take out of `batch` the client's own messages and what it does not take.

    Returns:
        The queue offsets of those that were too large for the client.
    """
    if subscription.is_replay:
        topic_filter = plain_filter(subscription.topic_filter)
        keep(batch, lambda i: is_of(batch, i, topic_filter))
    if subscription.options & NO_LOCAL:
        own = encode_origin(_PROTOCOL, subscription.session.client_id, b"")
        keep(batch, lambda i: own not in bytes(batch.buf[batch.properties_start[i] : batch.properties_end[i]]))
    if not subscription.session.packet_bytes_max:
        return []
    session, qos, identifier = subscription.session, subscription.qos, subscription.identifier
    too_large = [batch.queue_offset[i] for i in range(batch.count) if not fits(batch, i, session, qos, identifier)]
    if too_large:
        left_out = set(too_large)
        keep(batch, lambda i: batch.queue_offset[i] not in left_out)
    return too_large


def has_own_form(subscription: Subscription) -> bool:
    """Return whether a subscription is written to in a form that it shares with no other, or at a pace of its own."""
    session = subscription.session
    has_options = subscription.options & (NO_LOCAL | RETAIN_AS_PUBLISHED)
    is_other = subscription.is_replay or has_options or subscription.identifier
    is_alone = session.packet_bytes_max or session.aliases is not None or session.pace is not None
    return bool(is_other or is_alone)


def make_form(subscription: Subscription, now_ms: int) -> Form:
    """Return the form that a subscription alone is written to in."""
    session = subscription.session
    return Form(
        session.level,
        now_ms,
        subscription.identifier,
        keeps_retain=subscription.options & RETAIN_AS_PUBLISHED > 0,
        aliases=session.aliases,
        packet_bytes_max=session.packet_bytes_max,
    )


def unacked_denied(session: Session, window: InflightWindow, may: Permissions) -> Iterator[int]:
    """Give the numbers of what is in flight for filters that may not be read, which may leave the window meanwhile."""
    are_denied: dict[bytes, bool] = {b"": False}
    number = window.next_unacked(window.tail)
    while number < window.head:
        topic_filter = _filter_of(session, window, number)
        if topic_filter not in are_denied:
            are_denied[topic_filter] = not may.may_subscribe(plain_filter(topic_filter))
        if are_denied[topic_filter]:
            yield number
        number = window.next_unacked(number + 1)


def _filter_of(session: Session, window: InflightWindow, number: int) -> bytes:
    """Return the filter that a message in flight was sent for; empty for a retained one that nobody is owed."""
    subscription = session.sources[window.source_of(number)]
    if subscription is not None:
        return subscription.topic_filter
    catch_up = (session.retained_inflight or {}).get(number)
    return b"" if catch_up is None else catch_up.topic_filter


def find_decider(may: Permissions | None, action: str, name: bytes) -> str:
    """Return which rule denies to publish to a topic, or a subscription to a filter, for the log; empty: none."""
    if may is None:
        return ""
    return (
        may.find_decider("publish", name) if action == "publish" else may.find_decider("subscribe", plain_filter(name))
    )


def fits(batch: StoredBatch, i: int, session: Session, qos: int, identifier: int) -> bool:
    """Return whether the client takes a packet as large as message `i` needs, MQTT-3.1.2-24."""
    length = 2 + batch.topic_end[i] - batch.topic_start[i] + batch.body_end[i] - batch.body_start[i]
    if qos and (batch.flag[i] & FLAG_MARK_MASK != FLAG_MARK or batch.flag[i] & FLAG_QOS_MASK):
        length += 2
    if session.level == LEVEL_5:
        start, end = batch.properties_start[i], batch.properties_end[i]
        block = bytearray(block_bytes_max(end - start) + 8)
        length += BlockWriter().write(batch.buf, start, end, 0, identifier, block, 0)
    return 1 + len(write_varint(length)) + length <= session.packet_bytes_max


def keep(batch: StoredBatch, is_wanted: Callable[[int], bool]) -> int:
    """Keep the messages that are wanted; return how many are gone."""
    kept = 0
    count = batch.count
    for i in range(count):
        if is_wanted(i):
            if kept < i:
                move(batch, i, kept)
            kept += 1
    batch.count = kept
    return count - kept
