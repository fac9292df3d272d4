"""Messages for a moment of their own: which moment a send names, and how to take such a message back.

A send says `TIMER_DELAY_SEC`, `TIMER_DELAY_MS` or `TIMER_DELIVER_MS`, looked for in this order. Until then its
record lies on `rmq_sys_wheel_timer` with its topic and queue in REAL_TOPIC and REAL_QID.

Source: docs/protocols/rocketmq.md, "Timed messages".
"""

from __future__ import annotations

import base64
import binascii
from array import array
from collections.abc import Callable

from core.broker import Broker
from core.message import PublishBatch, Route
from core.properties import CANCEL, encode_properties
from core.schedule.hand_on import Destination
from core.schedule.slots import DELAY_MAX_MS, DUE_MAX_MS, encode_due
from gateway.rocketmq.delay import LATER_DISPATCH, REAL_QUEUE, REAL_TOPIC, ROUTES_MAX, real_route, waiting_prefix
from gateway.rocketmq.errors import CommandRefusedError
from gateway.rocketmq.fields import text_field
from gateway.rocketmq.recall_handle import VERSION, Handles
from gateway.rocketmq.send_run import REFUSED_TIMED, TIMED, SendRun, SendTarget
from gateway.rocketmq.topic_table import TopicTable
from lmq.remoting.commands import Command, answer
from lmq.remoting.response_codes import ResponseCode

DELAY_S = b"TIMER_DELAY_SEC"
DELAY_MS = b"TIMER_DELAY_MS"
DELIVER_MS = b"TIMER_DELIVER_MS"
OUT_MS = b"TIMER_OUT_MS"  # the second before the moment, as official brokers write it
SECOND_MS = 1_000
HANDLE_PARTS = 5  # RocketMQ's: version, topic, broker, moment, key
_DIGITS_MAX = 15  # so many seconds fit into 64 bits as milliseconds, too
_MOMENTS = (  # as they stand among others, behind the end of the one before
    (b"\x02%b\x01" % DELAY_S, SECOND_MS, True),
    (b"\x02%b\x01" % DELAY_MS, 1, True),
    (b"\x02%b\x01" % DELIVER_MS, 1, False),
)
_CANCEL = b"\x02%b\x01" % CANCEL
_PREFIX = frozenset((LATER_DISPATCH, REAL_TOPIC, REAL_QUEUE))


class TimedMessages:
    """What sends say of a moment, where those messages go when it comes, and recalls."""

    def __init__(self, broker: Broker, topics: TopicTable, broker_name: str) -> None:
        self._broker = broker
        self._topics = topics
        self._broker_name = broker_name
        self._routes: dict[bytes, Route] = {}
        self._last: tuple[bytes, Route] | None = None  # where the one before went
        self._batch = PublishBatch(1)
        broker.timer.resolve(REAL_TOPIC, self._resolve)
        broker.timer.resolve(LATER_DISPATCH, self._resolve)

    # Sends

    def plan(self, run: SendRun, now_ms: int) -> Handles | None:
        """Give the sends of a run that name a moment targets of their own; return their handles, None: none does."""
        if not any(target.delay_level == TIMED for target in run.targets):
            return None
        dues = array("q", bytes(8 * run.count))
        batch = run.batch
        extra = bytearray(run.extra[: run.extra_used])
        made: dict[tuple[int, int, int], int] = {}
        admitted: dict[int, tuple[int, int]] = {}  # by the moment that was wanted: many of a run want the same
        admit = self._broker.timer.admit
        route_index, starts, ends = batch.route_index, batch.extra_start, batch.extra_end  # once: it is dear
        for i in range(run.count):
            index = route_index[i]
            target: SendTarget = run.targets[index]
            if target.delay_level != TIMED:
                continue
            own = bytes(extra[starts[i] : ends[i]])
            wanted_ms, cancels = _read_moment(own, now_ms)
            refusal = target.refusal
            queue_id = -1
            if wanted_ms < 0 or wanted_ms - now_ms > DELAY_MAX_MS or (wanted_ms <= now_ms and cancels):
                refusal = refusal or REFUSED_TIMED
            elif wanted_ms > now_ms and not refusal:
                if wanted_ms not in admitted:
                    admitted[wanted_ms] = admit(wanted_ms, now_ms)
                due_ms, queue_id = admitted[wanted_ms]
                if cancels and not self._broker.timer.admit_recall(queue_id):
                    refusal = REFUSED_TIMED
                dues[i] = due_ms
                starts[i] = len(extra)
                extra += b"%b%b\x01%d\x02%b" % (own, OUT_MS, _second_before(due_ms), encode_due(due_ms))
                ends[i] = len(extra)
            key = (index, queue_id, refusal)
            if key not in made:
                made[key] = len(run.targets)
                run.targets.append(_like(target, queue_id, refusal))
            route_index[i] = made[key]
        batch.extra = bytes(extra)
        return Handles(self._broker_name.encode(), dues)

    def _resolve(self, text: bytes, flag: int) -> Destination | None:
        if self._last is not None:
            prefix, route = self._last
            end = len(prefix)
            if text.startswith(prefix) and text[end : text.find(b"\x01", end)] not in _PREFIX:
                return Destination(route, route.topic, text[end:], flag)
        end = 0
        name_end = text.find(b"\x01")
        while name_end >= 0 and text[end:name_end] in _PREFIX:
            end = text.find(b"\x02", name_end) + 1
            name_end = text.find(b"\x01", end)
        prefix = text[:end]
        found = self._routes.get(prefix) or real_route(self._broker, prefix)
        if found is None:
            return None
        if len(self._routes) >= ROUTES_MAX:
            self._routes.clear()
        self._routes[prefix] = found
        self._last = (prefix, found)
        return Destination(found, found.topic, text[end:], flag)

    # Recalls

    def recall(
        self,
        request: Command,
        may_publish: Callable[[bytes], bool],
        born_host: bytes,
        now_ms: int,
    ) -> tuple[Command, int]:
        """Take back the message that a handle names; return the answer, and the ticket that it has to wait for.

        Raises:
            CommandRefusedError: The handle is none of ours, or its message came already.
        """
        topic = text_field(request, "topic")
        if self._topics.find(topic.encode()) is None:
            remark = f"recall failed, the topic[{topic}] not exist"
            raise CommandRefusedError(ResponseCode.TOPIC_NOT_EXIST, remark)
        if not may_publish(topic.encode()):
            raise CommandRefusedError(ResponseCode.NO_PERMISSION, "no permission to send to this topic")
        handle_topic, broker_name, due_ms, key = _decode_handle(text_field(request, "recallHandle"))
        if handle_topic != topic:
            raise CommandRefusedError(ResponseCode.ILLEGAL_OPERATION, "recall failed, topic not match")
        if broker_name != self._broker_name:
            remark = "recall failed, broker service not available"
            raise CommandRefusedError(ResponseCode.ILLEGAL_OPERATION, remark)
        if not 0 < due_ms - now_ms <= DELAY_MAX_MS:
            raise CommandRefusedError(ResponseCode.ILLEGAL_OPERATION, "recall failed, timestamp invalid")
        said = {
            b"TAGS": b"_RECALL_TAG_",
            CANCEL: f"{topic}+{key}".encode(),
            b"UNIQ_KEY": key.encode(),
            DELIVER_MS: b"%d" % due_ms,
            OUT_MS: b"%d" % _second_before(due_ms),
        }
        self._put(topic.encode(), encode_properties(said), due_ms, born_host, now_ms)
        return answer(request, ResponseCode.SUCCESS, ext={"msgId": key}), self._batch.ticket

    def _put(self, topic: bytes, properties: bytes, due_ms: int, born_host: bytes, now_ms: int) -> None:
        due_ms, queue_id = self._broker.timer.admit(due_ms, now_ms)
        if not self._broker.timer.admit_recall(queue_id):
            raise CommandRefusedError(ResponseCode.SYSTEM_BUSY, "recall failed, too many of this minute or day are")
        route = self._broker.timer.route(queue_id, waiting_prefix(topic, 0, ()))
        batch = self._batch
        batch.clear()
        batch.buf, batch.extra, batch.born_host = b"0", properties + encode_due(due_ms), born_host
        batch.topics.append(route.topic)
        batch.routes.append(route)
        batch.route_index[0] = 0
        batch.body_start[0], batch.body_end[0] = 0, 1
        batch.extra_start[0], batch.extra_end[0] = 0, len(batch.extra)
        batch.born_ms[0] = now_ms
        batch.count = 1
        self._broker.publish_batch(batch, now_ms)
        batch.clear()


def _read_moment(properties: bytes, now_ms: int) -> tuple[int, bool]:
    """Return the moment that properties name, now where they name none, -1 where it is no number.

    The second is whether they take a message back.
    """
    text = b"\x02" + properties
    cancels = text.find(_CANCEL) >= 0
    for name, unit_ms, is_delay in _MOMENTS:
        at = text.rfind(name)
        if at >= 0:
            value = text[at + len(name) :].partition(b"\x02")[0]
            digits = value.removeprefix(b"-")
            if not digits.isdigit() or len(digits) > _DIGITS_MAX:
                return -1, cancels
            moment_ms = unit_ms * int(value) + (now_ms if is_delay else 0)
            return -1 if moment_ms > DUE_MAX_MS else max(moment_ms, 0), cancels
    return now_ms, cancels


def _second_before(due_ms: int) -> int:
    return (due_ms - 1) // SECOND_MS * SECOND_MS


def _like(target: SendTarget, queue_id: int, refusal: int) -> SendTarget:
    """Return the target of messages that go where those of `target` go, but through a queue of the timer."""
    made = SendTarget(
        target.topic,
        target.queue_id,
        target.dispatch,
        target.space_topic,
        target.default_topic,
        target.default_queues,
        refusal,
    )
    made.reconsumes = target.reconsumes
    made.reconsumes_max = target.reconsumes_max
    made.timer_queue = queue_id
    return made


def _decode_handle(handle: str) -> tuple[str, str, int, str]:
    """Return topic, broker name, moment and key of a handle.

    Raises:
        CommandRefusedError: It is none.
    """
    try:
        parts = base64.urlsafe_b64decode(handle.encode()).decode().split(" ")
    except (binascii.Error, UnicodeError, ValueError) as error:
        raise CommandRefusedError(ResponseCode.ILLEGAL_OPERATION, "recall handle is invalid") from error
    if (
        len(parts) != HANDLE_PARTS
        or parts[0] != VERSION.decode().strip()
        or not parts[3].isascii()
        or not parts[3].isdigit()
    ):
        raise CommandRefusedError(ResponseCode.ILLEGAL_OPERATION, "recall handle is invalid")
    if len(parts[3]) > _DIGITS_MAX or any(separator in parts[4] for separator in "\x01\x02"):
        raise CommandRefusedError(ResponseCode.ILLEGAL_OPERATION, "recall handle is invalid")
    return parts[1], parts[2], int(parts[3]), parts[4]
