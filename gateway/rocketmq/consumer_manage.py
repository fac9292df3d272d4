"""How far groups are, where queues begin and end, and single records: the requests that only ask or note a number.

Source: docs/protocols/rocketmq.md, "Offsets".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from core.broker import Broker
from core.message import StoredBatch
from gateway.rocketmq.errors import CommandRefusedError
from gateway.rocketmq.fields import GROUP_BYTES_MAX, OFFSET_MAX, flag_field, integer_field, text_field
from gateway.rocketmq.topic_table import TopicTable, queue_key
from lmq.remoting.commands import Command, answer
from lmq.remoting.response_codes import ResponseCode

YOUNG_LOG_BYTES = 1 << 30  # a queue whose first message lies no further back is young: new groups begin at its start
NEVER_COMMITTED = "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first"  # clients look for no other text


class LaterAnswered(Protocol):
    """The connection that a request came in by, which is answered when what it asks for is here."""

    def answer(self, request: Command, response: Command) -> None:
        """Send the answer to a request."""

    def settle(self, request: Command, work: Callable[[], Command | None]) -> None:
        """Send what `work` returns, or what its error means."""

    def may_read(self, queue: bytes) -> bool:
        """Whether this client may read the queue or topic."""


class ConsumerManage:
    """Answers 14, 15, 29, 30, 31, 32 and 33."""

    def __init__(self, broker: Broker, topics: TopicTable) -> None:
        self._broker = broker
        self._topics = topics
        self._one = StoredBatch(1)

    def query_offset(self, request: Command) -> Command:
        """Answer with the offset that a group goes on at.

        A group without one begins at 0 while the queue is young, as with the official broker.
        """
        group = text_field(request, "consumerGroup").encode()
        key = self._check_queue(request)
        offset = self._broker.consumer_offsets.get(group, key)
        if offset is None and flag_field(request, "setZeroIfNotFound", otherwise=True) and self.is_young(key):
            offset = 0
        if offset is None:
            return answer(request, ResponseCode.QUERY_NOT_FOUND, NEVER_COMMITTED)
        return _answer_offset(request, offset)

    def is_young(self, key: bytes) -> bool:
        """Return whether a queue has its first message still, and not much was stored since."""
        ref = self._broker.find_queue(key)
        if ref < 0:
            return True
        if self._broker.min_offset(ref) > 0:
            return False
        found = self._broker.read(ref, 0, self._one, 1, 1)
        if found <= 0:  # of one that is on its way nothing is known: it is not taken for young
            return not found
        first = self._one.physical_offset[0]
        self._one.clear()
        return self._broker.bytes_since(first) <= YOUNG_LOG_BYTES

    def update_offset(self, request: Command) -> Command:
        """Note the offset that a group goes on at; a negative one says nothing and is let go."""
        group = text_field(request, "consumerGroup").encode()
        key = self._check_queue(request)
        offset = integer_field(request, "commitOffset")
        if not 0 < len(group) <= GROUP_BYTES_MAX or offset > OFFSET_MAX:
            raise CommandRefusedError(ResponseCode.INVALID_PARAMETER, "the group or the offset is impossible")
        if offset >= 0:
            self._broker.consumer_offsets.commit(group, key, offset)
        return answer(request, ResponseCode.SUCCESS)

    def search_offset(self, request: Command, asker: LaterAnswered) -> None:
        """Answer with the offset of a moment, by store time, when it is found."""
        ref = self._broker.find_queue(self._check_queue(request))
        at_ms = integer_field(request, "timestamp")
        upper = request.ext.get("boundaryType", "").lower() == "upper"

        def tell(offset: int) -> None:
            if offset < 0:
                asker.answer(request, answer(request, ResponseCode.SYSTEM_BUSY, "the offset cannot be told now"))
            else:
                asker.answer(request, _answer_offset(request, offset))

        if ref < 0:
            tell(0)
        else:
            self._broker.find_offset(ref, at_ms, tell, upper=upper)

    def max_offset(self, request: Command) -> Command:
        """Answer with the next offset that will be given."""
        ref = self._broker.find_queue(self._check_queue(request))
        return _answer_offset(request, self._broker.max_offset(ref) if ref >= 0 else 0)

    def min_offset(self, request: Command) -> Command:
        """Answer with the first offset that is kept."""
        ref = self._broker.find_queue(self._check_queue(request))
        return _answer_offset(request, self._broker.min_offset(ref) if ref >= 0 else 0)

    def earliest_store_time(self, request: Command) -> Command:
        """Answer with the store time of the first message that is kept, or -1."""
        ref = self._broker.find_queue(self._check_queue(request))
        store_ms = -1
        if ref >= 0 and self._broker.read(ref, self._broker.min_offset(ref), self._one, 1, 1) > 0:
            store_ms = self._one.store_ms[0]
            self._one.clear()
        return answer(request, ResponseCode.SUCCESS, ext={"timestamp": str(store_ms)})

    def view_message(self, request: Command, asker: LaterAnswered) -> None:
        """Answer with the record at a place, when it is here."""
        place = integer_field(request, "offset")

        def tell(record: bytes | None) -> None:
            asker.settle(request, lambda: self._show(request, asker, place, record))

        self._broker.find_record(place, tell)

    def _show(self, request: Command, asker: LaterAnswered, place: int, record: bytes | None) -> Command:
        if record is None or not self._broker.read_record(record, self._one):
            return answer(request, ResponseCode.SYSTEM_ERROR, f"can not find message by the offset, {place}")
        topic = bytes(self._one.buf[self._one.topic_start[0] : self._one.topic_end[0]])
        self._one.clear()
        if not asker.may_read(topic):
            raise CommandRefusedError(ResponseCode.NO_PERMISSION, "no permission to read this message")
        return answer(request, ResponseCode.SUCCESS, body=record)

    def _check_queue(self, request: Command) -> bytes:
        """Return the key of the queue that the request names.

        Raises:
            CommandRefusedError: There is no such topic or queue.
        """
        name = text_field(request, "topic").encode()
        queue_id = integer_field(request, "queueId")
        topic = self._topics.get(name)
        if not 0 <= queue_id < max(topic.read_queues, topic.write_queues):
            raise CommandRefusedError(ResponseCode.INVALID_PARAMETER, f"queueId[{queue_id}] is illegal")
        return queue_key(name, queue_id)


def _answer_offset(request: Command, offset: int) -> Command:
    return answer(request, ResponseCode.SUCCESS, ext={"offset": str(offset)})
