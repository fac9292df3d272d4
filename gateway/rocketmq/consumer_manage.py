"""How far groups are, where queues begin and end, and single records: the requests that only ask or note a number.

Source: docs/protocols/rocketmq.md, "Offsets".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from core.broker import Broker
from core.errors import LmqError
from core.lmq.waiters import Reader
from core.message import AWAY, StoredBatch
from gateway.rocketmq.client import Client
from gateway.rocketmq.errors import CommandRefusedError
from gateway.rocketmq.fields import OFFSET_MAX, check_group, flag_field, integer_field, text_field
from gateway.rocketmq.moved_places import commit_by
from gateway.rocketmq.topic_table import TopicTable, queue_key
from lmq.remoting.commands import Command, answer
from lmq.remoting.message_codec import Record, decode_stored
from lmq.remoting.response_codes import ResponseCode

YOUNG_LOG_BYTES = 1 << 30  # a queue whose first message lies no further back is young: new groups begin at its start
NEVER_COMMITTED = "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first"  # clients look for no other text


Tell = Callable[[Command, int], Command | None]
"""Returns the answer to a request about the queue of a number; None while a message that it looks at is on its way."""


class LaterAnswered(Protocol):
    """The connection of a request that is answered later, when its messages are here."""

    client: Client

    def answer(self, request: Command, response: Command) -> None:
        """Send the answer to a request."""

    def settle(self, request: Command, work: Callable[[], Command | None]) -> None:
        """Send what `work` returns, or what its error means."""

    def may_read(self, queue: bytes) -> bool:
        """Whether this client may read the queue or topic."""

    def may_consume(self, group: bytes) -> bool:
        """Whether this client may consume as the group."""

    def may_read_record(self, record: Record) -> bool:
        """Whether this client may read a message."""


class LateAnswer(Reader):
    """The answer to a request that may have to wait until messages are here."""

    def __init__(
        self, broker: Broker, request: Command, asker: LaterAnswered, tell: Callable[[], Command | None]
    ) -> None:
        self._broker = broker
        self._request = request
        self._asker = asker
        self._tell = tell

    def on_ready(self, now_ms: int) -> bool:
        """Answer, or try again in the next turn."""
        del now_ms
        self._asker.settle(self._request, self._try)
        return False

    def _try(self) -> Command | None:
        told = self._tell()
        if told is None:
            self._broker.request_run(self)
        return told


class ConsumerManage:
    """Answers 14, 15, 29, 30, 31, 32 and 33."""

    def __init__(self, broker: Broker, topics: TopicTable) -> None:
        self._broker = broker
        self._topics = topics
        self._one = StoredBatch(1)

    def query_offset(self, request: Command, asker: LaterAnswered) -> Command | None:
        """Answer with the offset that a group goes on at.

        A group without one begins at 0 while the queue is young, as with the official broker.
        """
        group = text_field(request, "consumerGroup").encode()
        key = self._check_queue(request)
        offset = self._broker.consumer_offsets.get(group, key)
        if offset is not None:
            return _answer_offset(request, offset)
        if not flag_field(request, "setZeroIfNotFound", otherwise=True):
            return answer(request, ResponseCode.QUERY_NOT_FOUND, NEVER_COMMITTED)
        self._when_open(request, asker, self._begin_group)
        return None

    def _begin_group(self, request: Command, ref: int) -> Command | None:
        is_young = self._find_young(ref)
        if is_young is None:
            return None
        if is_young:
            return _answer_offset(request, 0)
        return answer(request, ResponseCode.QUERY_NOT_FOUND, NEVER_COMMITTED)

    def is_young(self, key: bytes) -> bool:
        """Return whether a queue, which is open, has its first message still, and not much was stored since.

        One whose first message is on its way is not taken for young.
        """
        return bool(self._find_young(self._broker.find_queue(key)))

    def _find_young(self, ref: int) -> bool | None:
        if ref < 0:
            return True
        if self._broker.min_offset(ref) > 0:
            return False
        found = self._broker.read(ref, 0, self._one, 1, 1)
        if found <= 0:
            return None if found == AWAY else True
        first = self._one.physical_offset[0]
        self._one.clear()
        return self._broker.bytes_since(first) <= YOUNG_LOG_BYTES

    def update_offset(self, request: Command, asker: LaterAnswered) -> Command:
        """Note the offset that a group goes on at, if the client may read there; a negative one is let go."""
        name = text_field(request, "consumerGroup")
        check_group(name)
        group = name.encode()
        key = self._check_queue(request)
        offset = integer_field(request, "commitOffset")
        if offset > OFFSET_MAX:
            raise CommandRefusedError(ResponseCode.INVALID_PARAMETER, "the offset is impossible")
        if not asker.may_read(key):
            raise CommandRefusedError(ResponseCode.NO_PERMISSION, "no permission to read this topic")
        if not asker.may_consume(group):
            raise CommandRefusedError(ResponseCode.NO_PERMISSION, "no permission to consume as this group")
        if offset >= 0:
            commit_by(self._broker, group, key, offset, asker.client.client_id.encode())
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

    def max_offset(self, request: Command, asker: LaterAnswered) -> None:
        """Answer with the next offset that will be given."""
        self._when_open(request, asker, self._tell_max)

    def _tell_max(self, request: Command, ref: int) -> Command:
        return _answer_offset(request, self._broker.max_offset(ref) if ref >= 0 else 0)

    def min_offset(self, request: Command, asker: LaterAnswered) -> None:
        """Answer with the first offset that is kept."""
        self._when_open(request, asker, self._tell_min)

    def _tell_min(self, request: Command, ref: int) -> Command:
        return _answer_offset(request, self._broker.min_offset(ref) if ref >= 0 else 0)

    def earliest_store_time(self, request: Command, asker: LaterAnswered) -> None:
        """Answer with the store time of the first message that is kept, or -1."""
        self._when_open(request, asker, self._tell_earliest)

    def _tell_earliest(self, request: Command, ref: int) -> Command | None:
        store_ms = -1
        found = self._broker.read(ref, self._broker.min_offset(ref), self._one, 1, 1) if ref >= 0 else 0
        if found == AWAY:
            return None
        if found:
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
        self._one.clear()
        if not asker.may_read_record(decode_stored(record)):
            raise CommandRefusedError(ResponseCode.NO_PERMISSION, "no permission to read this message")
        return answer(request, ResponseCode.SUCCESS, body=record)

    def _when_open(self, request: Command, asker: LaterAnswered, tell: Tell) -> None:
        """Answer what `tell` says of the queue that a request names, -1 where it is not there, when its ends are known.

        Where `tell` returns None, it is asked again in the next turn: what it looks at is on its way.

        Raises:
            CommandRefusedError: There is no such topic or queue.
        """
        ref = self._broker.find_queue(self._check_queue(request))

        late = LateAnswer(self._broker, request, asker, partial(tell, request, ref))

        def answer_open(error: LmqError | None) -> None:
            if error is None:
                late.on_ready(0)
            else:
                asker.answer(request, answer(request, ResponseCode.SYSTEM_BUSY, str(error)))

        if ref < 0:
            answer_open(None)
        else:
            self._broker.open_queue(ref, answer_open)

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
