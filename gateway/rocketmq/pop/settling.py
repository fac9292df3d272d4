"""Answers ACK_MESSAGE, BATCH_ACK_MESSAGE and CHANGE_MESSAGE_INVISIBLETIME: what consumers say of messages they have.

A receipt that is not good any more changes nothing, and is answered as if it were: so do official brokers.

Source: docs/protocols/rocketmq.md, "POP".
"""

from __future__ import annotations

import base64
import binascii
from array import array
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

from core.broker import Broker
from core.errors import LmqError
from gateway.rocketmq.client_table import read_object
from gateway.rocketmq.consumer_manage import LaterAnswered
from gateway.rocketmq.errors import CommandRefusedError
from gateway.rocketmq.fields import integer_field, text_field
from gateway.rocketmq.opened import open_queues
from gateway.rocketmq.pop.claims import Claims
from gateway.rocketmq.pop.receipts import Receipt, parse_receipt
from gateway.rocketmq.pop.service import INVISIBLE_MS_MAX
from gateway.rocketmq.topic_table import TopicTable, queue_key
from lmq.remoting.commands import Command, answer
from lmq.remoting.response_codes import ResponseCode

ACKS_MAX = 4_096  # of one batch: runs, each of one queue and one taking
BITS_BYTES_MAX = 8_192  # of one run: 65,536 messages
_LONG_NAMES = {
    "c": "consumerGroup",
    "t": "topic",
    "so": "startOffset",
    "q": "queueId",
    "pt": "popTime",
    "it": "invisibleTime",
    "b": "bitSet",
}


class Run(NamedTuple):
    """Messages of one queue that were taken together."""

    group: bytes
    topic: bytes
    queue_id: int
    until_ms: int
    offsets: list[int]


class Settling:
    """Finishes messages that were taken, and changes for how long they are hidden.

    Args:
        broker: Where the queues are.
        topics: The topics.
        claims: What groups have taken.
        on_settled: Told group, topic and queue of what was settled.
    """

    def __init__(
        self,
        broker: Broker,
        topics: TopicTable,
        claims: Claims,
        on_settled: Callable[[bytes, bytes, int], None],
    ) -> None:
        self._broker = broker
        self._topics = topics
        self._claims = claims
        self._on_settled = on_settled

    def ack(self, reader: LaterAnswered, request: Command) -> None:
        """Finish one message, and answer.

        Raises:
            CommandRefusedError: There is no such topic or queue.
        """
        topic, queue_id = self._find_queue(reader, request)
        work = partial(self._ack, request, topic, queue_id, reader.client.client_id.encode())
        self._when_open(reader, request, [queue_key(topic, queue_id)], work)

    def _ack(self, request: Command, topic: bytes, queue_id: int, member: bytes) -> Command:
        offset = integer_field(request, "offset")
        self._check_offset(topic, queue_id, offset, is_end_good=True)
        receipt = parse_receipt(text_field(request, "extraInfo"))
        group = text_field(request, "consumerGroup").encode()
        self._finish(Run(group, topic, queue_id, receipt.until_ms, [offset]), member)
        return answer(request, ResponseCode.SUCCESS)

    def ack_batch(self, reader: LaterAnswered, request: Command) -> None:
        """Finish many messages, and answer; those that are not there are passed over.

        Raises:
            CommandRefusedError: The body says nothing.
        """
        acks = read_object(request).get("acks") if request.body else None
        if not isinstance(acks, list) or not acks:
            raise CommandRefusedError(ResponseCode.NO_MESSAGE, "no acks in the body")
        if len(acks) > ACKS_MAX:
            raise CommandRefusedError(ResponseCode.INVALID_PARAMETER, f"more than {ACKS_MAX} acks in one batch")
        runs = [read_run(said) for said in acks if isinstance(said, dict)]
        keys = {queue_key(run.topic, run.queue_id): run.topic for run in runs}
        for key, topic in keys.items():
            if not reader.may_read(key):
                raise CommandRefusedError(ResponseCode.NO_PERMISSION, f"no permission to read {topic.decode()}")
        for group in {run.group for run in runs}:
            _check_group(reader, group)
        self._when_open(reader, request, keys, partial(self._ack_runs, request, runs, reader.client.client_id.encode()))

    def _ack_runs(self, request: Command, runs: Iterable[Run], member: bytes) -> Command:
        for run in runs:
            self._finish(run, member)
        return answer(request, ResponseCode.SUCCESS)

    def change_invisible(self, reader: LaterAnswered, request: Command, now_ms: int) -> None:
        """Show a message again after another time from now on; the answer has what its new receipt is made of.

        Raises:
            CommandRefusedError: There is no such topic or queue.
        """
        topic, queue_id = self._find_queue(reader, request)
        work = partial(self._change, request, topic, queue_id, now_ms)
        self._when_open(reader, request, [queue_key(topic, queue_id)], work)

    def _change(self, request: Command, topic: bytes, queue_id: int, now_ms: int) -> Command:
        offset = integer_field(request, "offset")
        self._check_offset(topic, queue_id, offset, is_end_good=False)
        receipt = parse_receipt(text_field(request, "extraInfo"))
        invisible_ms = integer_field(request, "invisibleTime")
        if not 0 <= invisible_ms <= INVISIBLE_MS_MAX:
            remark = f"invisibleTime[{invisible_ms}] is illegal, it is 0 to {INVISIBLE_MS_MAX} ms"
            raise CommandRefusedError(ResponseCode.INVALID_PARAMETER, remark)
        group = text_field(request, "consumerGroup").encode()
        taken = self._claims.find(group, queue_key(topic, queue_id))
        until_ms = now_ms + invisible_ms if invisible_ms else 0
        if taken is not None and taken.change_invisible(offset, receipt.until_ms, until_ms):
            self._on_settled(group, topic, queue_id)
        ext = {"popTime": str(now_ms), "invisibleTime": str(invisible_ms), "reviveQid": str(receipt.revive_queue)}
        return answer(request, ResponseCode.SUCCESS, ext=ext)

    def _finish(self, run: Run, member: bytes) -> None:
        key = queue_key(run.topic, run.queue_id)
        taken, code = self._claims.find(run.group, key), self._broker.pop.acknowledgers.code_of(member)
        if taken is not None and taken.ack_taken(array("q", run.offsets), len(run.offsets), run.until_ms, code):
            self._claims.note_moved(run.group, key, taken)
            self._on_settled(run.group, run.topic, run.queue_id)

    def _when_open(
        self, reader: LaterAnswered, request: Command, keys: Iterable[bytes], work: Callable[[], Command]
    ) -> None:
        """Answer what `work` returns once the ends of these queues are known: what a group took is checked by them."""

        def go_on(error: LmqError | None) -> None:
            if error is None:
                reader.settle(request, work)
            else:
                reader.answer(request, answer(request, ResponseCode.SYSTEM_BUSY, str(error)))

        open_queues(self._broker, keys, go_on)

    def _find_queue(self, reader: LaterAnswered, request: Command) -> tuple[bytes, int]:
        name = text_field(request, "topic")
        topic = self._topics.get(name.encode())
        queue_id = integer_field(request, "queueId")
        if not 0 <= queue_id < topic.read_queues:
            remark = f"queueId[{queue_id}] is illegal, topic:[{name}] topicConfig.readQueueNums:[{topic.read_queues}]"
            raise CommandRefusedError(ResponseCode.MESSAGE_ILLEGAL, remark)
        if not reader.may_read(queue_key(name.encode(), queue_id)):
            raise CommandRefusedError(ResponseCode.NO_PERMISSION, f"no permission to read {name}")
        _check_group(reader, text_field(request, "consumerGroup").encode())
        return name.encode(), queue_id

    def _check_offset(self, topic: bytes, queue_id: int, offset: int, *, is_end_good: bool) -> None:
        ref = self._broker.find_queue(queue_key(topic, queue_id))
        first = self._broker.min_offset(ref) if ref >= 0 else 0
        end = self._broker.max_offset(ref) if ref >= 0 else 0
        if not first <= offset < end + is_end_good:
            where = f"key:{topic.decode()}@{queue_id}, commit:{offset}, store:{first}~{end}"
            raise CommandRefusedError(ResponseCode.NO_MESSAGE, f"offset is illegal, {where}")


def _check_group(reader: LaterAnswered, group: bytes) -> None:
    if not reader.may_consume(group):
        remark = f"no permission to consume as {group.decode(errors='replace')}"
        raise CommandRefusedError(ResponseCode.NO_PERMISSION, remark)


def read_run(said: dict[str, Any]) -> Run:
    """Return one run of a batch, by the short names of its fields or the long ones.

    Raises:
        CommandRefusedError: A field is absent or of another kind.
    """
    group, topic, bits = (_field(said, name, str) for name in ("c", "t", "b"))
    first, queue_id, pop_ms, invisible_ms = (_field(said, name, int) for name in ("so", "q", "pt", "it"))
    if not group or not topic or "\0" in group or min(first, queue_id, pop_ms, invisible_ms) < 0 or first >= 1 << 62:
        raise CommandRefusedError(ResponseCode.SYSTEM_ERROR, "an ack of the batch is impossible")
    try:
        bit_set = base64.b64decode(bits, validate=True)
    except (ValueError, binascii.Error):
        bit_set = None
    if bit_set is None or len(bit_set) > BITS_BYTES_MAX:
        raise CommandRefusedError(ResponseCode.SYSTEM_ERROR, "the bitSet of an ack is not valid")
    offsets = [first + 8 * at + bit for at, byte in enumerate(bit_set) for bit in range(8) if byte >> bit & 1]
    receipt = Receipt(pop_ms, invisible_ms, 0)
    return Run(group.encode(), topic.encode(), queue_id, receipt.until_ms, offsets)


def _field(said: dict[str, Any], name: str, kind: type) -> Any:  # noqa: ANN401 - of the kind that was asked for
    value = said.get(name, said.get(_LONG_NAMES[name]))
    if type(value) is not kind:
        raise CommandRefusedError(ResponseCode.SYSTEM_ERROR, f"the field <{_LONG_NAMES[name]}> of an ack is null")
    return value
