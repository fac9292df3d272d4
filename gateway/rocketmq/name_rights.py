"""What the names of RocketMQ's topics and queues mean for rights: light queues are other doors' filters and queues.

Source: docs/security.md, "The same data by another name".
"""

from __future__ import annotations

from core.lmq.queue_name import LIGHT_PREFIX, MQTT, is_amqp, is_light, parse_queue_name
from core.properties import EXCHANGE, INNER_MULTI_DISPATCH, TOPIC
from core.reserved import OWN_ROOTS
from gateway.auth.permissions import Permissions
from gateway.auth.rule import ACTIONS_BY_KIND, GROUP, TOPIC as TOPIC_KIND
from gateway.rocketmq.topic_table import DEAD_PREFIX, NOT_SENDABLE, RETRY_PREFIX, SENT_GROUP
from lmq.remoting.message_codec import Record

VHOST = b"/"  # that RocketMQ's own topics and groups belong to
_MQTT_PREFIX = LIGHT_PREFIX + MQTT + b"%"


def may_read(may: Permissions, parent: bytes, name: bytes) -> bool:
    """Return whether a queue or topic may be read, by its name or its key in the store."""
    if is_light(name):
        return _may_read_light(may, name)
    topic = name.partition(b"/")[0]
    if topic == parent or topic in NOT_SENDABLE:
        return may.may_read_everything()
    return may.may_read(VHOST, group_or_topic(topic), kind_of(topic))


def _may_read_light(may: Permissions, name: bytes) -> bool:
    parsed = parse_queue_name(name)
    if parsed is None:  # of a long filter, say, which the name does not tell
        return may.may_read_everything() if is_of_a_door(name) else may.may_read(VHOST, name, TOPIC_KIND)
    kind, parts = parsed
    return may.may_subscribe(parts[0]) if kind == MQTT else may.may_read(parts[0], parts[1], TOPIC_KIND)


def may_write(may: Permissions, name: bytes) -> bool:
    """Return whether messages may be sent to a topic or light queue."""
    if not is_light(name):
        return may.may_write(VHOST, group_or_topic(name), kind_of(name))
    parsed = parse_queue_name(name)
    if parsed is None:
        return may.may_publish_matching(b"#") if is_of_a_door(name) else may.may_write(VHOST, name, TOPIC_KIND)
    kind, parts = parsed
    if kind != MQTT:
        return may.may_write(parts[0], parts[1], TOPIC_KIND)
    return not parts[0].startswith(OWN_ROOTS) and may.may_publish_matching(parts[0])


def may_consume(may: Permissions, group: bytes) -> bool:
    """Return whether a client may consume as a group: never as ours, whose offsets say which letters were sent back."""
    return group != SENT_GROUP and may.may_consume(VHOST, group)


def may_read_record(may: Permissions, parent: bytes, record: Record) -> bool:
    """Return whether a message may be read: of the parent topic by its own topic, or a light queue that it is in."""
    if record.topic != parent:
        return may_read(may, parent, record.topic)
    properties = record.properties
    if TOPIC in properties and EXCHANGE not in properties and may.may_bind_topic(properties[TOPIC]):
        return True
    names = properties.get(INNER_MULTI_DISPATCH, b"").split(b",")
    return any(is_light(name) and _may_read_light(may, name) for name in names) or may.may_read_everything()


def find_decider(may: Permissions, right: str, name: bytes) -> str:
    """Return which rule decides whether a name may be read (`read`) or sent to (`write`), for the log; empty: none."""
    parsed = parse_queue_name(name) if is_light(name) else None
    action = ACTIONS_BY_KIND[kind_of(name)][right]
    if parsed is None:
        return may.find_decider(action, group_or_topic(name if is_light(name) else name.partition(b"/")[0]), VHOST)
    kind, parts = parsed
    if kind == MQTT:
        return may.find_decider("subscribe" if right == "read" else "publish to matching", parts[0])
    return may.find_decider(action, parts[1], parts[0])


def is_of_a_door(name: bytes) -> bool:
    """Return whether a light queue is one that MQTT or AMQP makes."""
    return is_amqp(name) or name.startswith(_MQTT_PREFIX)


def kind_of(topic: bytes) -> str:
    """Return whether rights know a topic as one, or by its group."""
    return GROUP if topic.startswith((RETRY_PREFIX, DEAD_PREFIX)) else TOPIC_KIND


def group_or_topic(topic: bytes) -> bytes:
    """Return the name that rights know a topic by: what a group gave back is the group's."""
    for prefix in (RETRY_PREFIX, DEAD_PREFIX):
        if topic.startswith(prefix):
            return topic.removeprefix(prefix)
    return topic
