"""The grammar of topic names and topic filters.

Names and filters travel and are stored as UTF-8 bytes, exactly as sent. Control characters are refused, as MQTT 3.1.1
section 1.5.3 lets a server do: two of them are the separators of a record's properties.
"""

from __future__ import annotations

import re

from core.reserved import OWN_ROOTS, is_bridge_state
from gateway.mqtt.errors import MalformedPacketError
from gateway.mqtt.reason_codes import ReasonCode

TOPIC_BYTES_MAX = 16_384  # half of what the properties of a record can hold
LEVEL_COUNT_MAX = 200  # deeper ones are an attack on the trie; usual topics have under ten
SHARED_PREFIX = b"$share/"
QUEUE_PREFIX = b"$queue/"  # the old form of a shared subscription, of one group that has no name
EXCLUSIVE_PREFIX = b"$exclusive/"
REPLAY_PREFIX = b"$replay/"
DELAYED_PREFIX = b"$delayed/"
_QUEUE_GROUP = b"$queue"
_FORMS = (SHARED_PREFIX, QUEUE_PREFIX, EXCLUSIVE_PREFIX, REPLAY_PREFIX)
_NOT_FOR_CLIENTS = (*OWN_ROOTS, *_FORMS)

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def check_text(text: bytes, clause: str = "MQTT-1.5.3-1") -> str:
    """Return `text` decoded; it must be well-formed UTF-8 without U+0000.

    Raises:
        MalformedPacketError: It is not.
    """
    try:
        decoded = text.decode("utf-8")
    except UnicodeDecodeError:
        raise MalformedPacketError(clause, "a string is not well-formed UTF-8") from None
    if "\0" in decoded:
        raise MalformedPacketError("MQTT-1.5.3-2", "a string holds U+0000")
    return decoded


def _check_name(name: bytes, clause: str, code: ReasonCode) -> str:
    if not name:
        raise MalformedPacketError("MQTT-4.7.3-1", "a topic is empty", code)
    decoded = check_text(name, clause)
    if _CONTROL.search(decoded):
        raise MalformedPacketError("MQTT-1.5.3-2", "a topic holds a control character", code)
    if len(name) > TOPIC_BYTES_MAX or name.count(b"/") >= LEVEL_COUNT_MAX:
        raise MalformedPacketError("MQTT-4.7.3-3", "a topic is too long or has too many levels", code)
    return decoded


def check_topic(topic: bytes) -> None:
    """Check the name of a topic that is published to.

    Raises:
        MalformedPacketError: It is empty, no clean UTF-8, too long, or has a wildcard.
    """
    _check_name(topic, "MQTT-3.3.2-1", ReasonCode.TOPIC_NAME_INVALID)
    if b"+" in topic or b"#" in topic:
        raise MalformedPacketError("MQTT-3.3.2-2", "a published topic has a wildcard", ReasonCode.TOPIC_NAME_INVALID)


def is_for_clients(topic: bytes) -> bool:
    """Return whether clients may publish to a topic at all.

    Below `$SYS/broker/` the gateway speaks, and bridges say whether they are connected; and where a topic begins as the
    form of a filter does, no subscription matches it.
    """
    return not topic.startswith(_NOT_FOR_CLIENTS) or is_bridge_state(topic)


def split_share(topic_filter: bytes) -> tuple[bytes, bytes]:
    """Return group and filter of a shared subscription, which was checked; any other has an empty group."""
    if topic_filter.startswith(QUEUE_PREFIX):
        return _QUEUE_GROUP, topic_filter[len(QUEUE_PREFIX) :]
    if not topic_filter.startswith(SHARED_PREFIX):
        return b"", topic_filter
    group, _, inner = topic_filter[len(SHARED_PREFIX) :].partition(b"/")
    return group, inner


def is_shared(topic_filter: bytes) -> bool:
    """Return whether a subscription's messages are shared with others."""
    return topic_filter.startswith((SHARED_PREFIX, QUEUE_PREFIX))


def split_replay(topic_filter: bytes) -> tuple[bytes, bytes]:
    """Return start and filter of a replay."""
    start, _, plain = topic_filter[len(REPLAY_PREFIX) :].partition(b"/")
    return start, plain


def split_delayed(topic: bytes) -> tuple[bytes, bytes]:
    """Return what stands before the topic of a delayed message, and that topic; any other has nothing before it."""
    if not topic.startswith(DELAYED_PREFIX):
        return b"", topic
    inner = topic[len(DELAYED_PREFIX) :].partition(b"/")[2]
    return topic[: len(topic) - len(inner)], inner


def plain_filter(topic_filter: bytes) -> bytes:
    """Return what topics are matched with: the filter without what says how it is subscribed to.

    It is empty where nothing is left, or another form, for one does not stand within the other.
    """
    if topic_filter.startswith(EXCLUSIVE_PREFIX):
        plain = topic_filter[len(EXCLUSIVE_PREFIX) :]
    elif is_shared(topic_filter):
        _, plain = split_share(topic_filter)
    elif topic_filter.startswith(REPLAY_PREFIX):
        _, plain = split_replay(topic_filter)
    else:
        return topic_filter
    return b"" if plain.startswith(_FORMS) else plain


def _check_share(topic_filter: bytes) -> None:
    group, inner = split_share(topic_filter)
    if not group or not inner or b"+" in group or b"#" in group:
        reason = "a shared subscription without a group or a filter"
        raise MalformedPacketError("MQTT-4.8.2-1", reason, ReasonCode.TOPIC_FILTER_INVALID)


def check_topic_filter(topic_filter: bytes) -> None:
    """Check a topic filter: each wildcard fills its level, `#` is the last one.

    Raises:
        MalformedPacketError: It is no filter.
    """
    _check_name(topic_filter, "MQTT-3.8.3-1", ReasonCode.TOPIC_FILTER_INVALID)
    if topic_filter.startswith(SHARED_PREFIX):
        _check_share(topic_filter)
    if topic_filter.startswith(REPLAY_PREFIX):
        _, topic_filter = split_replay(topic_filter)  # the start may have a time zone, and so a +
    if b"#" in topic_filter and (
        topic_filter.index(b"#") != len(topic_filter) - 1 or (topic_filter != b"#" and topic_filter[-2:] != b"/#")
    ):
        reason = "a # is not the last level by itself"
        raise MalformedPacketError("MQTT-4.7.1-2", reason, ReasonCode.TOPIC_FILTER_INVALID)
    if b"+" in topic_filter and any(b"+" in level and level != b"+" for level in topic_filter.split(b"/")):
        raise MalformedPacketError("MQTT-4.7.1-3", "a + does not fill its level", ReasonCode.TOPIC_FILTER_INVALID)
