"""Takes messages of a group's queues for one consumer, and makes the answer that it gets them by.

Source: docs/protocols/rocketmq.md, "POP".
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

from core.broker import Broker
from core.lmq.queue_name import is_light
from core.message import StoredBatch
from core.metrics import DoorMetrics
from core.properties import INNER_MULTI_DISPATCH
from gateway.rocketmq.filters.matching import Filter, messages_max, pick_wanted
from gateway.rocketmq.picked_records import copied_bytes_max, copy_records, sum_bodies
from gateway.rocketmq.pop.again import attempts_of, has_property, write_again
from gateway.rocketmq.pop.claims import Claims, Taken
from gateway.rocketmq.pop.dead import DeadLetters, Spent
from gateway.rocketmq.pop.orders import Orders
from gateway.rocketmq.pop.receipts import ORDERED_REVIVE_QUEUE, Given, Receipt, describe, format_receipt
from gateway.rocketmq.pop.room import QueueWatch, Room
from gateway.rocketmq.retried import Retried
from gateway.rocketmq.topic_table import RETRY_PREFIX
from lmq.remoting.commands import FLAG_RESPONSE, Command, encode_header, encode_prefix
from lmq.remoting.response_codes import ResponseCode

COUNT_MAX = 32  # of one answer: clients may not ask for more
BYTES_MAX = 262_144  # of one answer's records, unless a single one is larger; official brokers give as much from memory
SCAN_MAX = 1_024  # messages that one answer holds against its filter: some milliseconds
IN_FLIGHT_MAX = 200_000  # of one queue and group, at 200 bytes each 40 MB
NOTHING = "NO_MESSAGE_IN_QUEUE"
ASKED_MAX = 10_000  # ordered answers of which it is known what a repeated request was to get; chosen


class Wish(NamedTuple):
    """What a consumer asks for."""

    group: bytes
    count_max: int
    invisible_ms: int
    wanted: Filter
    at_end: bool  # a new group begins at the end of each queue
    is_ordered: bool
    attempt_id: str  # of this asking: it is repeated where the answer did not come
    bytes_max: int = BYTES_MAX  # of records, unless a single one is larger


class Asked(NamedTuple):
    """What an answer had of one queue."""

    taken: Taken
    queue_id: int
    offsets: list[int]
    until_ms: int


class Answer:
    """An answer under way."""

    def __init__(self, wish: Wish, now_ms: int) -> None:
        self.wish = wish
        self.receipt = Receipt(now_ms, wish.invisible_ms, ORDERED_REVIVE_QUEUE if wish.is_ordered else 0)
        self.given: list[Given] = []
        self.asked: list[Asked] = []
        self.records: list[bytes] = []
        self.count = 0
        self.size = 0
        self.body_bytes = 0
        self.rest = 0
        self.scanned = 0
        self.scan_max = messages_max(wish.wanted, SCAN_MAX)

    @property
    def is_full(self) -> bool:
        """Whether nothing more goes in, or enough was looked at."""
        return self.count >= self.wish.count_max or self.size >= self.wish.bytes_max or self.scanned >= self.scan_max


class Taker:
    """Takes for all consumers of the door.

    Args:
        broker: Where the queues are.
        claims: What groups have taken.
        dead: Where messages go that were tried too often.
        metrics: The door's counters.
        broker_name: Our name in receipts.
        retried: Counts what groups had before.
    """

    def __init__(
        self,
        broker: Broker,
        claims: Claims,
        dead: DeadLetters,
        metrics: DoorMetrics,
        broker_name: str,
        *,
        retried: Retried,
    ) -> None:
        self._broker = broker
        self._claims = claims
        self._dead = dead
        self._metrics = metrics
        self._retried = retried
        self._broker_name = broker_name
        self._batch = StoredBatch(COUNT_MAX)
        self._picked = array("i", bytes(4 * COUNT_MAX))
        self._orders = Orders()
        self._asked: dict[tuple[bytes, bytes, str], list[Asked]] = {}  # ordered answers, by group, topic and asking

    def take(self, room: Room, queue_id: int, wish: Wish, now_ms: int) -> Answer:
        """Take messages of one of the room's queues, or of all in turn."""
        answer = self.begin(wish, now_ms)
        is_repeatable = wish.is_ordered and wish.attempt_id != ""
        if is_repeatable:
            self._give_same(room, answer, now_ms)
        for watch in room.ready_queues(queue_id):
            self._take_from(room, watch, answer, now_ms)
            if answer.is_full:
                break
        if is_repeatable and answer.asked:
            self._note_asked(room, answer)
        self._metrics.messages_out += answer.count
        return answer

    def begin(self, wish: Wish, now_ms: int) -> Answer:
        """Return an answer that has nothing."""
        return Answer(wish, now_ms)

    def has_messages(self, room: Room, queue_id: int, group: bytes, *, is_ordered: bool) -> bool:
        """Return whether there is something to take; queues without are parked on."""
        for watch in room.ready_queues(queue_id):
            is_blocked = False
            ref = room.find_queue(watch)
            if ref >= 0:
                taken = self._claims.find(group, watch.key)
                if taken is None:
                    start = self._broker.consumer_offsets.get(group, watch.key) or 0
                    ready = self._broker.max_offset(ref) - max(start, self._broker.min_offset(ref))
                else:
                    is_blocked = is_ordered and self._orders.is_blocked(group, watch.key, taken)
                    ready = 0 if is_blocked else taken.ready_count
                if ready > 0:
                    return True
            room.note_empty(watch, is_blocked=is_blocked)
        return False

    def _take_from(self, room: Room, watch: QueueWatch, answer: Answer, now_ms: int) -> None:
        wish = answer.wish
        if room.find_queue(watch) < 0:
            room.note_empty(watch)
            return
        taken = self._claims.open(wish.group, watch.key, at_end=wish.at_end)
        batch = self._batch
        in_flight_max = 0 if self._claims.is_full else IN_FLIGHT_MAX
        if wish.is_ordered and self._orders.is_blocked(wish.group, watch.key, taken):
            in_flight_max = 0
        self._orders.open(wish.group, watch.key, taken)
        while not answer.is_full and taken.unacked_count < in_flight_max:
            count_max = min(wish.count_max - answer.count, answer.scan_max)
            until_ms = answer.receipt.until_ms
            found = taken.take(batch, count_max, wish.bytes_max - answer.size, until_ms, now_ms)
            if found <= 0:
                room.note_empty(watch)
                return
            answer.scanned += found
            self._claims.note_taken(wish.group, watch.key, taken, found)
            is_given = self._sort_out(watch, taken, answer, now_ms)
            if wish.is_ordered:  # what goes to the dead letters is in the way until it is there
                held = [offset for offset in batch.queue_offset[: batch.count] if taken.is_hidden(offset)]
                self._orders.note_taken(wish.group, watch.key, held)
                is_given = is_given or bool(held)
            batch.clear()
            if is_given:
                break
        if taken.unacked_count >= in_flight_max:
            room.note_empty(watch, is_blocked=True)
        answer.rest += max(taken.ready_count, 0)

    def _give_same(self, room: Room, answer: Answer, now_ms: int) -> None:
        """Give what an answer had, where a consumer asks for just that again: it did not come.

        That is no attempt more. What is on its way is given when it is asked for once more; what was shown by then, or
        settled, is none of it.
        """
        batch, until_ms = self._batch, answer.receipt.until_ms
        for asked in self._asked.pop((room.group, room.topic, answer.wish.attempt_id), ()):
            taken, watch = asked.taken, room.find_watch(asked.queue_id)
            held = [one for one in asked.offsets if taken.change_invisible(one, asked.until_ms, until_ms)]
            if not held or watch is None:
                continue
            if taken.read_offsets(array("q", held), len(held), batch) < len(held):
                answer.asked.append(Asked(taken, asked.queue_id, held, until_ms))
                continue
            for i in range(batch.count):
                batch.attempt[i] = taken.attempt(batch.queue_offset[i])
            if batch.count:
                self._sort_out(watch, taken, answer, now_ms)
            batch.clear()

    def _note_asked(self, room: Room, answer: Answer) -> None:
        if len(self._asked) >= ASKED_MAX:
            del self._asked[next(iter(self._asked))]
        self._asked[room.group, room.topic, answer.wish.attempt_id] = answer.asked

    def _sort_out(self, watch: QueueWatch, taken: Taken, answer: Answer, now_ms: int) -> bool:
        """Put what is wanted of the messages that were taken into the answer; return whether any is.

        What has outlived its time to live is done.
        """
        batch, picked, wish = self._batch, self._picked, answer.wish
        expired = self._broker.lifetimes.take_expired(batch, watch.key, now_ms)
        if expired:
            self._finish(taken, watch.key, wish.group, expired)
            self._metrics.drop("expired", len(expired))
            self._broker.lasting_endings.note((watch.key, wish.group), expired, len(expired), "expired", now_ms)
        wanted = pick_wanted(batch, wish.wanted, picked)
        if wanted < batch.count:
            kept = set(picked[:wanted])
            unwanted = [batch.queue_offset[i] for i in range(batch.count) if i not in kept]
            self._finish(taken, watch.key, wish.group, unwanted)
        if not wanted:
            return False
        body_bytes = sum_bodies(batch, picked, 0, wanted)
        self._metrics.bytes_out += body_bytes
        answer.body_bytes += body_bytes
        light_name = watch.key if is_light(watch.key) else b""
        is_plain = not light_name and not watch.key.startswith(RETRY_PREFIX)
        if is_plain and batch.attempt[picked[0]] == 1:  # `take` never gives new messages and others together
            offsets = [batch.queue_offset[picked[at]] for at in range(wanted)]
            answer.records.append(self._copy(picked, wanted, light_name))
            answer.size += len(answer.records[-1])
            counts: dict[int, int] = {}
        else:
            offsets, counts = self._write_each(watch, taken, answer, wanted, now_ms)
        if offsets:
            if batch.attempt[picked[0]] > 1 or watch.key.startswith(RETRY_PREFIX):
                self._retried.note(wish.group, watch.key, len(offsets))
            answer.given.append(Given(watch.queue_id, offsets, counts))
            answer.count += len(offsets)
            answer.asked.append(Asked(taken, watch.queue_id, offsets, answer.receipt.until_ms))
        return bool(offsets)

    def _finish(self, taken: Taken, key: bytes, group: bytes, offsets: list[int]) -> None:
        """Finish what no consumer is given."""
        taken.ack_many(array("q", offsets), len(offsets))
        self._claims.note_moved(group, key, taken)

    def _write_each(
        self, watch: QueueWatch, taken: Taken, answer: Answer, wanted: int, now_ms: int
    ) -> tuple[list[int], dict[int, int]]:
        """Put messages into the answer each by itself; return their offsets, and the attempts before of some."""
        batch = self._batch
        light_name = watch.key if is_light(watch.key) else b""
        first = batch.queue_offset[self._picked[0]]
        one = array("i", [0])
        offsets: list[int] = []
        counts: dict[int, int] = {}
        for at in range(wanted):
            i = one[0] = self._picked[at]
            offset, times = batch.queue_offset[i], batch.attempt[i] - 1
            record = self._copy(one, 1, light_name)
            spent = Spent(watch.room, watch.queue_id, taken, record, offset, times, answer.receipt.until_ms)
            if times and self._dead.take_in(spent, now_ms):
                continue
            if times or not _is_told_by_its_record(record, light_name):
                receipt = format_receipt(first, answer.receipt, self._broker_name, watch.queue_id, offset)
                record = write_again(record, times, receipt)
            offsets.append(offset)
            if times:
                counts[offset] = times
            answer.records.append(record)
            answer.size += len(record)
        return offsets, counts

    def _copy(self, picked: array[int], count: int, light_name: bytes) -> bytes:
        """Return the records of messages end to end."""
        out = bytearray(copied_bytes_max(self._batch, picked, count, light_name))
        return bytes(out[: copy_records(self._batch, picked, count, light_name, out, 0)])


def _is_told_by_its_record(record: bytes, light_name: bytes) -> bool:
    """Return whether a client finds the message's queue and offset in its record, as a receipt needs them.

    In that of a light queue's it looks for them only where the record was never tried before.
    """
    return bool(light_name) and has_property(record, INNER_MULTI_DISPATCH) and not attempts_of(record)


def encode_answer(answer: Answer, request: Command, empty_code: ResponseCode, empty_remark: str = NOTHING) -> bytes:
    """Return the frame that answers with what was taken, with another code and remark where that is nothing."""
    body = b"".join(answer.records)
    receipt = answer.receipt
    ext = {
        "popTime": str(receipt.pop_ms),
        "invisibleTime": str(receipt.invisible_ms),
        "reviveQid": str(receipt.revive_queue),
        "restNum": str(answer.rest),
    }
    if answer.count:
        ext |= describe(answer.given, is_ordered=answer.wish.is_ordered)
    code = ResponseCode.SUCCESS if answer.count else empty_code
    remark = "FOUND" if answer.count else empty_remark
    kind = request.header_type
    header = encode_header(Command(code, request.opaque, FLAG_RESPONSE, ext, remark=remark, header_type=kind))
    return b"".join((encode_prefix(header, kind, len(body)), header, body))
