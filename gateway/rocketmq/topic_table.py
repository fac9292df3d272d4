"""The topics of RocketMQ clients: their queues and permissions, durable, made on first use.

Light queues (`%LMQ%…`) and retry topics (`%RETRY%…`) are topics of one queue that need no entry: a group that comes,
has nothing to try again and leaves, leaves nothing behind. The template topic TBW102 and the parent topic are built in.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from typing import Protocol

from core.lmq.queue_name import is_light
from core.reserved import RESERVED_TOPICS
from core.row_format import UNSAID, RowFormat
from core.schedule.slots import TIMER_TOPIC
from gateway.rocketmq.errors import CommandRefusedError
from lmq.remoting.response_codes import ResponseCode

PERM_INHERIT = 1
PERM_WRITE = 2
PERM_READ = 4
TEMPLATE = b"TBW102"
RETRY_PREFIX = b"%RETRY%"
DEAD_PREFIX = b"%DLQ%"
OWN_GROUPS = b"CID_RMQ_SYS_"  # groups that are official brokers' own, and the gateway's, begin so
SENT_GROUP = b"CID_RMQ_SYS_LETTERS"  # its offset on a topic of dead letters says which were sent back
TOPIC_BYTES_MAX = 127  # as in RocketMQ
RETRY_TOPIC_BYTES_MAX = 255  # as in RocketMQ: such a name has a group's and a topic's in it
QUEUES_MAX = 65_535  # of one topic; chosen: each may become a light queue
SCHEDULE_TOPIC = b"SCHEDULE_TOPIC_XXXX"  # what delayed messages wait on
HALF_TOPIC = b"RMQ_SYS_TRANS_HALF_TOPIC"  # what half messages wait on
OP_TOPIC = b"RMQ_SYS_TRANS_OP_HALF_TOPIC"  # which of them are done with
GIVEN_UP_TOPIC = b"TRANS_CHECK_MAX_TIME_TOPIC"  # half messages that nobody ended, for operators to read
NOT_SENDABLE = RESERVED_TOPICS.union(
    (
        SCHEDULE_TOPIC,
        TIMER_TOPIC,
        HALF_TOPIC,
        OP_TOPIC,
        GIVEN_UP_TOPIC,
        b"SELF_TEST_TOPIC",
        b"OFFSET_MOVED_EVENT",
    )
)

_NAME = re.compile(rb"[%|a-zA-Z0-9_-]+")
# What a topic may be said to be for; the types of RocketMQ 5.5. Programs read it, brokers do not look at it.
MESSAGE_TYPES = ("UNSPECIFIED", "NORMAL", "FIFO", "DELAY", "TRANSACTION", "PRIORITY", "LITE", "MIXED")
_ROW = struct.Struct(">HHB")
_MORE = struct.Struct(">?i")


class TopicRows(Protocol):
    """A durable map, as the store's tables are."""

    def get(self, key: bytes) -> bytes | None:
        """Return the value of `key`, or None."""

    def put(self, key: bytes, value: bytes) -> None:
        """Set the value of `key`."""

    def delete(self, key: bytes) -> None:
        """Remove `key`, where it is there."""

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Give all keys with their values."""

    def __len__(self) -> int: ...


class Topic:
    """How many queues a topic has, and what clients may do with them.

    `is_order`, `sys_flag` and `message_type` (one of `MESSAGE_TYPES`, or empty) are what its maker said, for clients
    that ask.
    """

    __slots__ = ("is_order", "message_type", "perm", "read_queues", "sys_flag", "write_queues")

    def __init__(
        self,
        read_queues: int,
        write_queues: int,
        perm: int = PERM_READ | PERM_WRITE,
        *,
        is_order: bool = False,
        sys_flag: int = 0,
        message_type: str = "",
    ) -> None:
        self.read_queues = read_queues
        self.write_queues = write_queues
        self.perm = perm
        self.is_order = is_order
        self.sys_flag = sys_flag
        self.message_type = message_type

    def encode(self) -> bytes:
        """Return the topic as its row has it."""
        numbers = _ROW.pack(self.read_queues, self.write_queues, self.perm)
        return numbers + _MORE.pack(self.is_order, self.sys_flag) + self.message_type.encode()

    @classmethod
    def decode(cls, row: bytes) -> Topic:
        """Return the topic of a row."""
        read_queues, write_queues, perm = _ROW.unpack_from(row)
        is_order, sys_flag = _MORE.unpack_from(row, _ROW.size)
        said = row[_ROW.size + _MORE.size :].decode()
        return cls(read_queues, write_queues, perm, is_order=is_order, sys_flag=sys_flag, message_type=said)


def _upgrade_unsaid(row: bytes) -> bytes:
    """The first gateways wrote only queues and permissions."""
    return row if len(row) > _ROW.size else row + _MORE.pack(False, 0)  # noqa: FBT003 - of the struct


ROWS = RowFormat(1, {UNSAID: _upgrade_unsaid})
LIGHT_TOPIC = Topic(1, 1)
RETRY_TOPIC = Topic(1, 1)  # of a group that never was given another


class TopicTable:
    """All topics.

    Args:
        rows: Where they are kept.
        parent_topic: The topic that MQTT and AMQP messages are stored on; built in, of one queue.
        topics_max: No more than these are made by clients.
        makes_topics: Whether a send to an unknown topic makes it.
        queues: How many queues such a topic has at most.
        reply_topic: The topic that replies to requests are sent to; built in, of one queue.
    """

    def __init__(
        self,
        rows: TopicRows,
        parent_topic: bytes,
        *,
        topics_max: int,
        makes_topics: bool,
        queues: int = 8,
        reply_topic: bytes | None = None,
    ) -> None:
        self._rows = rows
        self.made_count = 0  # rows put since the start
        self.on_changed: list[Callable[[], None]] = []  # called when what was known of a topic is no longer true
        self._known = {name: Topic(1, 1) for name in (parent_topic, reply_topic) if name is not None}
        self._known[GIVEN_UP_TOPIC] = Topic(1, 1, PERM_READ)
        self.reload(topics_max=topics_max, makes_topics=makes_topics, queues=queues)
        self._built_in = frozenset(self._known) | NOT_SENDABLE

    def reload(self, *, topics_max: int, makes_topics: bool, queues: int = 8) -> None:
        """Make so many topics from now on, or none; those that are there stay."""
        self._topics_max = topics_max
        self._makes_topics = makes_topics
        self._known[TEMPLATE] = Topic(queues, queues, PERM_READ | PERM_WRITE | (PERM_INHERIT if makes_topics else 0))
        for callback in self.on_changed:
            callback()

    def find(self, name: bytes) -> Topic | None:
        """Return the topic of that name, or None. What is the log's own is none; each group has a retry topic."""
        if is_light(name):
            return LIGHT_TOPIC
        if name in RESERVED_TOPICS:
            return None
        topic = self._known.get(name)
        if topic is None:
            row = self._rows.get(name)
            if row is not None:
                topic = self._known[name] = Topic.decode(row)
            elif name.startswith(RETRY_PREFIX) and is_topic_name(name):
                topic = RETRY_TOPIC
        return topic

    def get(self, name: bytes) -> Topic:
        """Return the topic of that name.

        Raises:
            CommandRefusedError: There is none.
        """
        topic = self.find(name)
        if topic is None:
            raise CommandRefusedError(
                ResponseCode.TOPIC_NOT_EXIST, f"topic[{name.decode(errors='replace')}] not exist, apply first please!"
            )
        return topic

    def open_for_send(self, name: bytes, default_topic: bytes, default_queues: int) -> Topic:
        """Return the topic of that name, made from `default_topic` where there is none.

        Raises:
            CommandRefusedError: It cannot be made, or nobody may send to it.
        """
        check_topic_name(name)
        if name in NOT_SENDABLE:
            raise CommandRefusedError(
                ResponseCode.NO_PERMISSION, f"Sending message to topic[{name.decode()}] is forbidden."
            )
        topic = self.find(name)
        if topic is None:
            topic = self._make(name, default_topic, default_queues)
        if not topic.perm & PERM_WRITE:
            raise CommandRefusedError(ResponseCode.NO_PERMISSION, f"the topic[{name.decode()}] is not writable")
        return topic

    def open_retry(self, group: bytes, queues: int = 1) -> Topic | None:
        """Return the retry topic of a group, with an entry where it has several queues; None for an impossible name."""
        topic = self.find(RETRY_PREFIX + group)
        if topic is RETRY_TOPIC and queues > 1 and len(self._rows) < self._topics_max:
            topic = Topic(queues, queues)
            self._put(RETRY_PREFIX + group, topic)
        return topic

    def open_dead(self, group: bytes) -> Topic | None:
        """Return the dead-letter topic of a group, made where it is not there; None where its name is impossible."""
        name = DEAD_PREFIX + group
        topic = self.find(name)
        if topic is None and is_topic_name(name) and len(self._rows) < self._topics_max:
            topic = Topic(1, 1)
            self._put(name, topic)
        return topic

    def set(self, name: bytes, topic: Topic) -> None:
        """Make a topic, or change it; messages of a removed queue can be read again once the queue is back.

        Raises:
            CommandRefusedError: The name or a number is impossible, or there are too many topics.
        """
        check_topic_name(name)
        if name in self._built_in or is_light(name):
            raise _own_topic(name)
        if not (0 <= topic.read_queues <= QUEUES_MAX and 0 <= topic.write_queues <= QUEUES_MAX):
            remark = f"a topic has at most {QUEUES_MAX} queues"
            raise CommandRefusedError(ResponseCode.INVALID_PARAMETER, remark)
        if self._rows.get(name) is None and len(self._rows) >= self._topics_max:
            raise CommandRefusedError(ResponseCode.SYSTEM_BUSY, f"there are {self._topics_max} topics already")
        self._known[name] = topic
        self._put(name, topic)
        self._tell_changed()

    def delete(self, name: bytes) -> bool:
        """Forget a topic; its messages stay in the log for as long as others of their age. False: there is none.

        Raises:
            CommandRefusedError: There cannot be such a topic, or it is one of our own.
        """
        check_topic_name(name)
        if name in self._built_in:
            raise _own_topic(name)
        if self._rows.get(name) is None:
            return False
        self._known.pop(name, None)
        self._rows.delete(name)
        self._tell_changed()
        return True

    def names(self) -> list[bytes]:
        """Return the names of all topics that were made."""
        return [name for name, _row in self._rows.items()]  # noqa: PERF102 - a table has no `keys`

    def _tell_changed(self) -> None:
        for tell in self.on_changed:
            tell()

    def _make(self, name: bytes, default_topic: bytes, default_queues: int) -> Topic:
        template = self.find(default_topic)
        is_group_topic = name.startswith((RETRY_PREFIX, DEAD_PREFIX))
        if not self._makes_topics or not (is_group_topic or (template and template.perm & PERM_INHERIT)):
            raise CommandRefusedError(
                ResponseCode.TOPIC_NOT_EXIST, f"topic[{name.decode()}] not exist, apply first please!"
            )
        if len(self._rows) >= self._topics_max:
            raise CommandRefusedError(ResponseCode.SYSTEM_BUSY, f"there are {self._topics_max} topics already")
        queues = 1
        if template is not None and not is_group_topic:
            queues = max(1, min(default_queues, template.write_queues))
        topic = Topic(queues, queues)
        self._put(name, topic)
        return topic

    def _put(self, name: bytes, topic: Topic) -> None:
        self.made_count += 1
        self._rows.put(name, topic.encode())


def _own_topic(name: bytes) -> CommandRefusedError:
    remark = f"The topic[{name.decode()}] is conflict with system topic."
    return CommandRefusedError(ResponseCode.INVALID_PARAMETER, remark)


def is_topic_name(name: bytes) -> bool:
    """Return whether `name` keeps to RocketMQ's alphabet and length."""
    limit = RETRY_TOPIC_BYTES_MAX if name.startswith((RETRY_PREFIX, DEAD_PREFIX)) else TOPIC_BYTES_MAX
    return len(name) <= limit and _NAME.fullmatch(name) is not None


def check_topic_name(name: bytes) -> None:
    """Refuse a name that is none.

    Raises:
        CommandRefusedError: It is empty, too long, or has other characters.
    """
    if is_topic_name(name):
        return
    if len(name) > TOPIC_BYTES_MAX:
        raise CommandRefusedError(
            ResponseCode.INVALID_PARAMETER, "The specified topic is longer than topic max length."
        )
    raise CommandRefusedError(
        ResponseCode.INVALID_PARAMETER,
        "The specified topic contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$",
    )


def queue_key(topic: bytes, queue_id: int) -> bytes:
    """Return the store's key of a topic's queue; a light queue's is its name."""
    return topic if is_light(topic) else b"%b/%d" % (topic, queue_id)
