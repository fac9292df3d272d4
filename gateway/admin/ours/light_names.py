"""Finds light queues of MQTT and RocketMQ by what their clients call them."""

from __future__ import annotations

from collections.abc import Iterable

from core.lmq.queue_name import is_light, mqtt_queue_name
from gateway.admin.asking import open_queue
from gateway.admin.queue_metrics import LightEntry
from gateway.admin.view import AdminView


async def find_named(view: AdminView, names: Iterable[str]) -> list[LightEntry]:
    """Return MQTT filters and queues of RocketMQ's topics, as in `Orders/0`; a name may be one of each, or of none.

    Raises:
        HTTPException: 503: Where a queue ends cannot be told now.
    """
    found: list[LightEntry] = []
    broker = view.broker
    for name in dict.fromkeys(names):
        for door, key in (("mqtt", mqtt_queue_name(name.encode())), ("rocketmq", _topic_queue(view, name.encode()))):
            queue_ref = broker.find_queue(key) if key else -1
            if queue_ref >= 0:
                await open_queue(broker, queue_ref)
                first, end = broker.min_offset(queue_ref), broker.max_offset(queue_ref)
                found.append(LightEntry(door, name, end - first, broker.reader_count(queue_ref), end))
    return found


def _topic_queue(view: AdminView, name: bytes) -> bytes:
    """Return the store's key of a queue of a topic of RocketMQ's clients, nothing where it is none."""
    topic, _, number = name.rpartition(b"/")
    is_theirs = number.isdigit() and not is_light(topic) and topic != view.broker.parent_topic
    return name if is_theirs and view.rocketmq.topics.find(topic) is not None else b""
