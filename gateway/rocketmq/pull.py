"""Pulls of topics' queues and of light queues, answered at once or held until there is something.

A held pull is one small object, parked on its queue. It is answered once: when the queue has a message that its
filter wants, or when its time is over.

Source: docs/protocols/rocketmq.md, "Pulls".
"""

from __future__ import annotations

from array import array
from functools import partial
from typing import Protocol, cast

from core.broker import Broker
from core.cache_budget import Cache
from core.errors import LmqError
from core.lmq.queue_name import is_light
from core.message import AWAY, StoredBatch
from core.metrics import DoorMetrics
from gateway.rocketmq.client import Client
from gateway.rocketmq.errors import CommandRefusedError
from gateway.rocketmq.fields import OFFSET_MAX, check_group, integer_field, text_field
from gateway.rocketmq.filters.matching import Filter, messages_max, parse_filter, pick_wanted
from gateway.rocketmq.filters.subscription import Subscriptions
from gateway.rocketmq.group_table import GroupTable
from gateway.rocketmq.held import HELD_MAX, Held
from gateway.rocketmq.held_table import HeldTable
from gateway.rocketmq.moved_places import commit_by
from gateway.rocketmq.picked_records import (
    copied_bytes_max,
    copy_records,
    count_fitting,
    pick_all,
    pick_tagged,
    sum_bodies,
)
from gateway.rocketmq.pull_codes import encode_busy, encode_empty, judge_pull, make_found_header
from gateway.rocketmq.retried import Retried
from gateway.rocketmq.topic_table import PERM_READ, TopicTable, queue_key
from lmq.remoting.commands import Command, encode_prefix
from lmq.remoting.response_codes import ResponseCode

FLAG_COMMIT = 0x1
FLAG_SUSPEND = 0x2
FLAG_SUBSCRIPTION = 0x4
COUNT_MAX = 1024  # of one answer, whatever the client asks for
BYTES_MAX = 262_144  # of one answer's records, unless a single one is larger; official brokers give as much from memory
SCAN_MAX = 4096  # messages that one pull looks at for those its filter wants; chosen: four batches of columns
SUSPEND_MS_MAX = 600_000  # longer than any client waits for an answer
KNOWN_BYTES = 96  # of a key and a number, besides the key's letters
HEAD_BYTES = 512  # room for what stands before an answer's records: its prefix, its header of at most 360 bytes
OUT_BYTES = HEAD_BYTES + BYTES_MAX
_HEAD_BYTES = HEAD_BYTES
_OUT_BYTES = OUT_BYTES
NOTHING: frozenset[ResponseCode] = frozenset()
NOT_FOUND = frozenset((ResponseCode.PULL_NOT_FOUND,))
TOO_FAST = "TOO_MANY_MESSAGES_A_SECOND"
NOTHING_WANTED = frozenset((ResponseCode.PULL_NOT_FOUND, ResponseCode.PULL_RETRY_IMMEDIATELY))


class Puller(Protocol):
    """The connection that a pull came in by."""

    held: HeldTable
    client: Client

    @property
    def is_writable(self) -> bool:
        """Whether an answer with messages may be written now."""

    def write(self, data: bytes | memoryview) -> None:
        """Send `data`, which may be used again after the call where it is not `bytes`."""

    def may_read(self, queue: bytes) -> bool:
        """Whether this client may read the queue."""

    def may_consume(self, group: bytes) -> bool:
        """Whether this client may consume as the group."""

    def hold(self, held: Held) -> None:
        """Keep a pull that waits, and see to its deadline."""


class HeldPull(Held):
    """One pull; while it waits, parked on its queue and kept by its connection."""

    __slots__ = (
        "bytes_max",
        "count_max",
        "header_type",
        "is_open",
        "is_opening",
        "is_suspended",
        "key",
        "light_name",
        "may_wait",
        "offset",
        "opaque",
        "puller",
        "queue_ref",
        "service",
        "wanted",
    )

    def __init__(self, service: PullService, puller: Puller, request: Command) -> None:
        self.service = service
        self.puller = puller
        self.opaque = request.opaque
        self.header_type = request.header_type
        self.key = b""  # of the queue
        self.queue_ref = -1  # while nobody has sent anything there: pulls alone make no queue
        self.light_name = b""  # of the queue, where it is a light one
        self.offset = integer_field(request, "queueOffset")
        self.count_max = max(1, min(integer_field(request, "maxMsgNums"), COUNT_MAX))
        self.bytes_max = max(1, min(integer_field(request, "maxMsgBytes", BYTES_MAX), BYTES_MAX))
        self.wanted: Filter = None
        self.deadline_ms = 0
        self.may_wait = False  # for messages, and not for its pace alone
        self.is_open = False  # the ends of the queue are known
        self.is_opening = False
        self.is_suspended = False  # waits for its queue to grow, not for it to be made or for room in the output

    def on_ready(self, now_ms: int) -> bool:
        """The queue grew, or the output has room again."""
        self.service.resume(self, now_ms)
        return False

    def resume(self, now_ms: int) -> None:
        """Look again whether there is something."""
        self.service.resume(self, now_ms)

    def forget(self) -> None:
        """End it without an answer."""
        self.service.forget(self)

    def reader_count(self) -> int:
        """Return 1: it is one client's."""
        return 1


class PullService:
    """Answers PULL_MESSAGE and LITE_PULL_MESSAGE."""

    def __init__(
        self,
        broker: Broker,
        topics: TopicTable,
        groups: GroupTable,
        subscriptions: Subscriptions,
        metrics: DoorMetrics,
        *,
        retried: Retried,
    ) -> None:
        self._broker = broker
        self._topics = topics
        self._groups = groups
        self._subscriptions = subscriptions
        self._metrics = metrics
        self._retried = retried
        self._queues = Cache(broker.caches, "rocketmq_queues", _measure)  # as asked for -> key and number
        self._batch = StoredBatch(COUNT_MAX)
        self._is_away = False  # what the last read asked for is on its way
        self._picked = array("i", bytes(4 * COUNT_MAX))
        topics.on_changed.append(self._forget_queues)  # a typed method is no value, as the cache's own would be
        self._out = bytearray(_OUT_BYTES)  # the answer under way: the same memory each time, which is in the caches

    def _forget_queues(self) -> None:
        self._queues.clear()

    def pull(self, puller: Puller, request: Command, now_ms: int) -> None:
        """Answer a pull, or hold it.

        Raises:
            CommandRefusedError: The pull asks for what there is not.
        """
        pull = HeldPull(self, puller, request)
        sys_flag = integer_field(request, "sysFlag")
        topic = text_field(request, "topic")
        key = self._find_queue(pull, topic, request)
        if is_light(key):
            pull.light_name = key
        if not puller.may_read(key):
            raise CommandRefusedError(ResponseCode.NO_PERMISSION, f"no permission to read {topic}")
        group = request.ext.get("consumerGroup", "")
        check_group(group)
        if not puller.may_consume(group.encode()):
            raise CommandRefusedError(ResponseCode.NO_PERMISSION, f"no permission to consume as {group}")
        if not self._groups.is_empty:
            self._check_group(group)
        pull.wanted = self._filter_of(request, topic, sys_flag)
        if sys_flag & FLAG_COMMIT:
            self._commit(request, key, puller.client.client_id.encode())
        pull.may_wait = bool(sys_flag & FLAG_SUSPEND) and len(puller.held) < HELD_MAX
        if pull.may_wait:
            suspend_ms = integer_field(request, "suspendTimeoutMillis", 0)
            pull.deadline_ms = now_ms + max(0, min(suspend_ms, SUSPEND_MS_MAX))
        elif puller.held.is_pausing:
            pull.deadline_ms = now_ms + puller.held.pause_ms(now_ms)
        if puller.held.is_pausing and len(puller.held) >= HELD_MAX:
            self._answer_paused(pull)
        elif not puller.is_writable or (pull.queue_ref >= 0 and not self._is_open(pull)):
            puller.hold(pull)
        elif not self._answer(pull, NOT_FOUND if pull.may_wait else NOTHING, now_ms):
            self._suspend(pull)
            puller.hold(pull)

    def _find_queue(self, pull: HeldPull, topic: str, request: Command) -> bytes:
        """Find the queue that is asked for, whose number is -1 where it has nothing yet; return its key."""
        asked = (topic, request.ext.get("queueId"))
        known = cast("tuple[bytes, int] | None", self._queues.get(asked))
        if known is None:
            key = self._check_queue(topic.encode(), integer_field(request, "queueId"))
            pull.key, pull.queue_ref = key, self._broker.find_queue(key)
            if pull.queue_ref >= 0 and self._is_open(pull):
                self._queues.put(asked, (key, pull.queue_ref))
        else:
            pull.key, pull.queue_ref = known
            pull.is_open = True
        return pull.key

    def _is_open(self, pull: HeldPull) -> bool:
        """Return whether the ends of the queue of a pull are known; if not, the pull is called when they are."""
        if not pull.is_open and not pull.is_opening:
            pull.is_opening = True
            self._broker.open_queue(pull.queue_ref, partial(self._note_open, pull))
        return pull.is_open

    def _note_open(self, pull: HeldPull, error: LmqError | None) -> None:
        pull.is_opening = False
        pull.is_open = error is None
        if id(pull) not in pull.puller.held:
            return  # it is told at once, or the client is gone
        if error is None:
            self._broker.request_run(pull)
        else:
            pull.puller.write(encode_busy(pull.opaque, pull.header_type))
            self.forget(pull)

    def _check_queue(self, topic: bytes, queue_id: int) -> bytes:
        found = self._topics.get(topic)
        if not found.perm & PERM_READ:
            raise CommandRefusedError(ResponseCode.NO_PERMISSION, f"the topic[{topic.decode()}] is not readable")
        if not 0 <= queue_id < found.read_queues:
            raise CommandRefusedError(
                ResponseCode.INVALID_PARAMETER,
                f"queueId[{queue_id}] is illegal, topic:[{topic.decode()}] has {found.read_queues} queues",
            )
        return queue_key(topic, queue_id)

    def _check_group(self, name: str) -> None:
        group = self._groups.get(name.encode())
        if not group.consumeEnable:
            raise CommandRefusedError(ResponseCode.NO_PERMISSION, f"subscription group no permission, {name}")
        if not group.consumeBroadcastEnable and self._subscriptions.is_broadcast(name):
            remark = f"the consumer group[{name}] can not consume by broadcast way"
            raise CommandRefusedError(ResponseCode.NO_PERMISSION, remark)

    def _filter_of(self, request: Command, topic: str, sys_flag: int) -> Filter:
        if not sys_flag & FLAG_SUBSCRIPTION:
            subscription = self._subscriptions.find_subscription(text_field(request, "consumerGroup"), topic)
            if subscription.version < integer_field(request, "subVersion", 0):
                raise CommandRefusedError(
                    ResponseCode.SUBSCRIPTION_NOT_LATEST, "the consumer's subscription not latest"
                )
            return subscription.wanted
        return parse_filter(request.ext.get("expressionType", ""), request.ext.get("subscription", ""))

    def _commit(self, request: Command, key: bytes, member: bytes) -> None:
        offset = integer_field(request, "commitOffset")
        group = request.ext.get("consumerGroup", "").encode()
        if 0 <= offset <= OFFSET_MAX:
            commit_by(self._broker, group, key, offset, member)

    # Held pulls

    def _suspend(self, pull: HeldPull) -> None:
        if pull.is_suspended:
            return
        if pull.queue_ref < 0:
            self._broker.await_queue(pull.key, pull)
        else:
            pull.is_suspended = True
            self._broker.park(pull.queue_ref, pull)

    def resume(self, pull: HeldPull, now_ms: int) -> None:
        """Try a held pull again; an answer ends it."""
        if not pull.puller.is_writable:
            if pull.puller.held.is_pausing and pull.deadline_ms <= now_ms:
                self._answer_paused(pull)
            return
        if pull.queue_ref < 0:
            pull.queue_ref = self._broker.find_queue(pull.key)
        if pull.queue_ref >= 0 and not self._is_open(pull):
            return
        is_over = pull.deadline_ms <= now_ms or not pull.may_wait
        if self._answer(pull, NOTHING if is_over else NOTHING_WANTED, now_ms):
            self.forget(pull)
            return
        self._suspend(pull)
        if pull.queue_ref >= 0 and pull.offset < self._broker.max_offset(pull.queue_ref):
            self._broker.request_run(pull)  # more to look at than one turn allows

    def forget(self, pull: HeldPull) -> None:
        """End a held pull without an answer."""
        pull.puller.held.pop(id(pull), None)
        self._broker.cancel_run(pull)
        if pull.is_suspended:
            self._broker.unpark(pull.queue_ref, pull)
        else:
            self._broker.forget_awaited(pull.key, pull)

    # Answers

    def _ends(self, queue_ref: int) -> tuple[int, int]:
        """Return the first offset of a queue and that behind its last; 0 where nobody has sent anything there."""
        return (self._broker.min_offset(queue_ref), self._broker.max_offset(queue_ref)) if queue_ref >= 0 else (0, 0)

    def _answer(self, pull: HeldPull, waits_on: frozenset[ResponseCode], now_ms: int) -> bool:
        """Answer the pull, unless the code would be one of `waits_on`; return whether it was answered."""
        min_offset, max_offset = self._ends(pull.queue_ref)
        code, remark, next_offset = judge_pull(pull.offset, min_offset, max_offset)
        if code == ResponseCode.SUCCESS:
            if self._answer_found(pull, min_offset, max_offset, now_ms):
                return True
            if self._is_away and waits_on:
                return False
            code, remark, next_offset = ResponseCode.PULL_RETRY_IMMEDIATELY, "NO_MATCHED_MESSAGE", pull.offset
        if code in waits_on:
            return False
        offsets = (next_offset, min_offset, max_offset)
        pull.puller.write(encode_empty(pull.opaque, pull.header_type, code, remark, offsets))
        return True

    def _answer_paused(self, pull: HeldPull) -> None:
        """Answer a pull whose time is over before its client may have more: it comes again from the same offset."""
        offsets = (pull.offset, *self._ends(pull.queue_ref))
        code, kind = ResponseCode.PULL_NOT_FOUND, pull.header_type
        pull.puller.write(encode_empty(pull.opaque, kind, code, TOO_FAST, offsets))
        self.forget(pull)

    def _answer_found(self, pull: HeldPull, min_offset: int, max_offset: int, now_ms: int) -> bool:
        """Answer with the messages from the pull's offset on that its filter wants.

        Where the filter wants none of the messages that were looked at, the pull's offset moves past them.
        """
        end = self._collect(pull, now_ms)
        if end == _HEAD_BYTES:
            return False
        header = make_found_header(pull.opaque, pull.header_type, pull.offset, min_offset, max_offset)
        header = encode_prefix(header, pull.header_type, end - _HEAD_BYTES) + header
        start = _HEAD_BYTES - len(header)
        out = self._out
        out[start:_HEAD_BYTES] = header
        pull.puller.write(memoryview(out)[start:end])
        if len(out) > _OUT_BYTES:
            self._out = bytearray(_OUT_BYTES)
        return True

    def _collect(self, pull: HeldPull, now_ms: int) -> int:
        """Copy the wanted records into the answer, from `_HEAD_BYTES` on; return where they end there.

        The pull's offset moves past what was looked at, and what has outlived its time to live.
        """
        batch, picked = self._batch, self._picked
        end = _HEAD_BYTES
        count = size = scanned = bodies = 0
        limit = min(pull.count_max, pull.puller.held.room(now_ms))
        bodies_max = pull.puller.held.room_bytes(now_ms)
        scan_max = messages_max(pull.wanted, SCAN_MAX)
        while count < limit and size < pull.bytes_max and scanned < scan_max:
            count_max = limit - count if pull.wanted is None else min(COUNT_MAX, scan_max)
            found = self._broker.read(pull.queue_ref, pull.offset, batch, count_max, pull.bytes_max - size)
            self._is_away = found == AWAY
            scanned += max(found, 1)
            expired = self._broker.lifetimes.take_expired(batch, pull.light_name, now_ms)
            if expired:
                self._metrics.drop("expired", len(expired))
            wanted = self._pick(pull)
            taken = min(wanted, limit - count)
            if taken:
                taken = max(count_fitting(batch, picked, taken, bodies_max - bodies), 0 if count else 1)
            if taken:
                self._make_room(end + copied_bytes_max(batch, picked, taken, pull.light_name))
                end = copy_records(batch, picked, taken, pull.light_name, self._out, end)
                size = end - _HEAD_BYTES
                bodies += sum_bodies(batch, picked, 0, taken)
            count += taken
            before = pull.offset
            if taken < wanted:  # the others are too many or too large for this answer
                pull.offset = batch.queue_offset[picked[taken - 1]] + 1 if taken else batch.queue_offset[picked[0]]
            else:
                pull.offset = batch.next_offset
            batch.clear()
            if pull.offset == before or taken < wanted or (pull.wanted is None and taken):
                break
        self._metrics.messages_out += count
        self._metrics.bytes_out += bodies
        self._retried.note_pulled(pull.key, count)
        pull.puller.held.note(count, bodies, now_ms)
        return end

    def _pick(self, pull: HeldPull) -> int:
        """Pick what the pull wants of what was read; return how many messages."""
        if pull.wanted is None:
            return pick_all(self._batch, self._picked)
        if isinstance(pull.wanted, frozenset):
            return pick_tagged(self._batch, pull.wanted, self._picked)
        return pick_wanted(self._batch, pull.wanted, self._picked)

    def _make_room(self, size: int) -> None:
        """Let the answer be so long; what lies there stays."""
        if size > len(self._out):
            self._out += bytes(size - len(self._out))


def _measure(known: tuple[bytes, int], generation: int) -> int:  # noqa: ARG001 - the interface says so
    return KNOWN_BYTES + len(known[0])
