"""Messages that consumers send back because they failed: to their group's retry topic, then to its dead letters.

Source: docs/protocols/rocketmq.md, "Retries and dead letters".
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from core.broker import Broker
from core.message import FLAG_MARK, FLAG_MARK_MASK, FLAG_RETAIN, PublishBatch, Route, StoredBatch
from core.properties import CRC, DISPATCH_SET, INNER_MULTI_DISPATCH, INNER_MULTI_QUEUE_OFFSET, encode_properties
from gateway.rocketmq.consumer_manage import LaterAnswered
from gateway.rocketmq.delay import LATER_DISPATCH, REAL_QUEUE, REAL_TOPIC, DelayService
from gateway.rocketmq.errors import CommandRefusedError
from gateway.rocketmq.fields import integer_field, text_field
from gateway.rocketmq.group_table import GroupTable
from gateway.rocketmq.send import SendService, low_room
from gateway.rocketmq.topic_table import DEAD_PREFIX, PERM_WRITE, RETRY_PREFIX, TopicTable, is_topic_name
from lmq.remoting.commands import Command, answer, encode_command
from lmq.remoting.message_codec import Record, decode_stored
from lmq.remoting.response_codes import ResponseCode

LEVEL_FIRST = 3  # of a message that failed for the first time, where the client leaves it to us: 10 s
BACK = "rejected"  # why a message is a dead letter: a consumer said so
SPENT = "attempts"  # why a message is a dead letter: it was given as often as its group wants
VERSION_WITH_LIMIT = 121  # clients from 3.4.9 on say how often they want a message
RETRY_TOPIC = b"RETRY_TOPIC"
ORIGIN_ID = b"ORIGIN_MESSAGE_ID"
KEPT_BITS = 0x703  # sysFlag: whether and how the body is compressed
OURS = (CRC, DISPATCH_SET, INNER_MULTI_DISPATCH, INNER_MULTI_QUEUE_OFFSET, LATER_DISPATCH, REAL_TOPIC, REAL_QUEUE)


class FailedConsumer(LaterAnswered, Protocol):
    """The connection of a consumer that failed."""

    def write(self, data: bytes) -> None:
        """Send `data`."""


class Failed(NamedTuple):
    """A message that a consumer sends back."""

    request: Command
    peer: FailedConsumer
    group: bytes
    place: int
    now_ms: int


class SendBack:
    """Answers CONSUMER_SEND_MSG_BACK, when the message is as safe as the settings say."""

    def __init__(
        self, broker: Broker, topics: TopicTable, groups: GroupTable, sends: SendService, delays: DelayService
    ) -> None:
        self._broker = broker
        self._topics = topics
        self._groups = groups
        self._sends = sends
        self._delays = delays
        self._metrics = broker.metrics.door("rocketmq")
        self._one = StoredBatch(1)
        self._batch = PublishBatch(1)
        self._next_queue = 0

    def send_back(self, request: Command, peer: FailedConsumer, now_ms: int) -> None:
        """Store a copy of the message at a place for another try, when it is here.

        Raises:
            CommandRefusedError: The group's name is impossible, or the room on the disk is low.
        """
        name = text_field(request, "group").encode()
        if not name or not is_topic_name(RETRY_PREFIX + name):
            remark = f"subscription group not exist, {name.decode(errors='replace')}"
            raise CommandRefusedError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, remark)
        self._check_room()
        failed = Failed(request, peer, name, integer_field(request, "offset"), now_ms)
        level = integer_field(request, "delayLevel")

        def take_back(record: bytes | None) -> None:
            peer.settle(request, lambda: self._take_back(failed, level, record))

        if self._groups.get(name).retryQueueNums:
            self._broker.find_record(failed.place, take_back)
        else:
            self._answer(failed)

    def _take_back(self, failed: Failed, level: int, found: bytes | None) -> None:
        request = failed.request
        record = self._read(failed, found)
        group = self._groups.get(failed.group)
        limit = group.retryMaxTimes
        if request.version >= VERSION_WITH_LIMIT:
            limit = integer_field(request, "maxReconsumeTimes", limit)
        is_spent = level < 0 or record.reconsume_times >= limit
        failed_level = level
        level = 0 if is_spent else level or LEVEL_FIRST + record.reconsume_times
        if is_spent:
            route = self._dead_route(failed.group)
        else:
            route = self._retry_route(failed.group, group.retryQueueNums, level)
        self._store(record, route, level, failed.now_ms)
        if is_spent:
            self._metrics.bury(BACK if failed_level < 0 else SPENT)
        self._answer(failed)

    def bury(self, data: bytes, group: bytes, times_before: int, now_ms: int) -> int:
        """Store a copy of a record, which was tried `times_before` times more than it says, among the dead letters.

        Returns:
            The ticket of its batch: whether it is stored is told by that.

        Raises:
            CommandRefusedError: The room on the disk is low, or the group's name is impossible.
            DiskFullError: There is none.
        """
        self._check_room()
        record = decode_stored(data)
        record.reconsume_times += times_before
        self._store(record, self._dead_route(group), 0, now_ms)
        self._metrics.bury(SPENT)
        return self._batch.ticket

    def revive(self, data: bytes, group: bytes, now_ms: int) -> int:
        """Store a copy of a dead letter for its group, which gets it as if it had never failed.

        Returns:
            The ticket of its batch: whether it is stored is told by that.

        Raises:
            CommandRefusedError: The room on the disk is low, or the group's retry topic takes nothing.
            DiskFullError: There is none.
        """
        self._check_room()
        route = self._retry_route(group, self._groups.get(group).retryQueueNums, 0)
        return self._store_anew(decode_stored(data), route, now_ms, is_retry=True)

    def resend(self, data: bytes, topic: bytes, now_ms: int) -> int:
        """Store a copy of a dead letter on a topic, for all groups that consume it, as `revive` does for one.

        A retry topic is one of a group, which is told of what topic the letter is.

        Raises:
            CommandRefusedError: The room on the disk is low, or nobody may send to the topic.
            DiskFullError: There is no room.
        """
        self._check_room()
        record = decode_stored(data)
        queues = self._topics.open_for_send(topic, b"", 0).write_queues
        self._next_queue += 1
        route = self._broker.route_rocketmq(topic, self._next_queue % max(queues, 1), ())
        return self._store_anew(record, route, now_ms, is_retry=topic.startswith((RETRY_PREFIX, DEAD_PREFIX)))

    def _store_anew(self, record: Record, route: Route, now_ms: int, *, is_retry: bool) -> int:
        record.reconsume_times = -1  # the copy has one more: none
        self._store(record, route, 0, now_ms, is_retry=is_retry)
        return self._batch.ticket

    def _check_room(self) -> None:
        if self._broker.room.is_low:
            raise CommandRefusedError(ResponseCode.SYSTEM_BUSY, low_room(self._broker.room))

    def _answer(self, failed: Failed) -> None:
        if not failed.request.is_one_way:
            data = encode_command(answer(failed.request, ResponseCode.SUCCESS))
            self._sends.answers.write_when_safe(failed.peer.write, data, self._batch.ticket)

    def _read(self, failed: Failed, record: bytes | None) -> Record:
        one = self._one
        if record is None or not self._broker.read_record(record, one):
            raise CommandRefusedError(ResponseCode.SYSTEM_ERROR, f"look message by offset failed, {failed.place}")
        one.clear()
        decoded = decode_stored(record)
        if not failed.peer.may_read_record(decoded):
            raise CommandRefusedError(ResponseCode.NO_PERMISSION, "no permission to read this message")
        return decoded

    def _retry_route(self, group: bytes, queues: int, level: int) -> Route:
        topic = self._topics.open_retry(group, queues)
        name = RETRY_PREFIX + group
        if topic is None or not topic.perm & PERM_WRITE:
            raise CommandRefusedError(ResponseCode.NO_PERMISSION, f"the topic[{name.decode()}] cannot be sent to")
        self._next_queue += 1
        queue_id = self._next_queue % max(min(queues, topic.write_queues), 1)
        if not level:
            return self._broker.route_rocketmq(name, queue_id, ())
        return self._delays.route(level, name, queue_id, ())

    def _dead_route(self, group: bytes) -> Route:
        name = DEAD_PREFIX + group
        if self._topics.open_dead(group) is None:
            raise CommandRefusedError(ResponseCode.SYSTEM_ERROR, f"topic[{name.decode()}] not exist")
        return self._broker.route_rocketmq(name, 0, ())

    def _store(self, record: Record, route: Route, level: int, now_ms: int, *, is_retry: bool = True) -> None:
        """Store a copy of the record that says where it comes from, and that it failed once more.

        `is_retry`: its group's clients take it for a message of its topic, whatever topic the copy is on.
        """
        said = {name: value for name, value in record.properties.items() if name not in OURS}
        if is_retry:
            said.setdefault(RETRY_TOPIC, record.topic)
        else:
            said.pop(RETRY_TOPIC, None)
        said.setdefault(ORIGIN_ID, b"%b%016X" % (record.store_host.hex().upper().encode(), record.physical_offset))
        said |= {b"WAIT": b"false", b"DELAY": b"%d" % level}
        extra = encode_properties(said)
        batch = self._batch
        batch.clear()
        batch.buf, batch.extra, batch.born_host = record.body, extra, record.born_host
        batch.topics.append(route.topic)
        batch.routes.append(route)
        batch.route_index[0] = 0
        batch.body_start[0], batch.body_end[0] = 0, len(record.body)
        batch.extra_start[0], batch.extra_end[0] = 0, len(extra)
        is_marked = record.flag & FLAG_MARK_MASK == FLAG_MARK
        batch.flag[0] = record.flag & ~FLAG_RETAIN if is_marked else record.flag  # a copy is no retained message
        batch.sys_flag[0] = record.sys_flag & KEPT_BITS
        batch.reconsume_times[0] = record.reconsume_times + 1
        batch.born_ms[0] = record.born_ms
        batch.count = 1
        self._broker.publish_batch(batch, now_ms)
        batch.clear()
