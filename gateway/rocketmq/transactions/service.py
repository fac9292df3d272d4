"""Transactions: ends them as their producers say, and asks about those that nobody ends.

What is known of a half message is whether it is done with, a bit; all else is read from the log when it is wanted.

Source: docs/protocols/rocketmq.md, "Transactions".
"""

from __future__ import annotations

import logging
from array import array
from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial

from core.broker import Broker
from core.errors import LmqError
from core.lmq.waiters import Reader
from core.message import AWAY, StoredBatch
from core.metrics import TransactionMetrics
from gateway.rocketmq.errors import CommandRefusedError, response_code_of
from gateway.rocketmq.fields import integer_field, text_field
from gateway.rocketmq.producer_table import ProducerTable
from gateway.rocketmq.transactions.checks import Checks, Times
from gateway.rocketmq.transactions.endings import COUNT_MAX, Action, Ender, Ending, Endings, Published, Row
from gateway.rocketmq.transactions.half import Half, decode_done, read_half
from gateway.rocketmq.transactions.pending import Pending
from gateway.rocketmq.transactions.progress import Progress
from lmq.remoting.commands import Command, answer
from lmq.remoting.response_codes import ResponseCode

LOGGER = logging.getLogger(__name__)

WAITING_MAX = 16_384  # ends that wait for their turn; chosen: each is an object, and producers wait for the answers
WAITING_MANY = 1_024  # when so many wait, more of them are ended in a turn
LOAD_COUNT = 256  # records read together at a start
LOAD_BYTES = 1 << 20  # of them; each has 4 KiB at most
NOT_FOUND = "Find prepared transaction message failed"  # as official brokers say it, like the other remarks
LOW_ROOM = "[REJECTREQUEST]system busy, start flow control for a while: low on disk"


class Transactions(Reader):
    """All transactions of the door."""

    def __init__(self, broker: Broker, producers: ProducerTable, *, broker_name: str, times: Times) -> None:
        self._times = times
        self._broker = broker
        self._metrics: TransactionMetrics = broker.metrics.transactions
        self._progress = Progress(broker)
        self._pending = Pending(self._progress.half_from)
        self._endings = Endings(broker)
        self._checks = Checks(
            broker,
            broker.table("rocketmq_transactions"),
            progress=self._progress,
            producers=producers,
            broker_name=broker_name,
            metrics=self._metrics,
        )
        self._waiting: deque[Ending] = deque()
        self._busy: dict[int, list[Ending]] = {}  # by half message: it is being ended, so others have to wait
        self._found = StoredBatch(max(COUNT_MAX, LOAD_COUNT))
        self._load_at = self._progress.done_from
        self._is_loaded = False
        self._is_stuck = False  # something could not be stored: not tried again before the next look

    def positions(self) -> Iterator[tuple[int, int]]:
        """Give the queues of half messages, and of those done with, each with the first offset that is needed."""
        return self._progress.positions()

    def reload(self, times: Times) -> None:
        """Ask producers at other times from now on."""
        self._times = times
        self._checks.look_again()

    # Requests

    def end(self, request: Command, ender: Ender) -> Command | None:
        """Take in how a transaction ended; answered when that is as safe as the settings say.

        Raises:
            CommandRefusedError: A field is missing or wrong, or too many wait.
        """
        group = text_field(request, "producerGroup").encode()
        offset = integer_field(request, "tranStateTableOffset")
        place = integer_field(request, "commitLogOffset")
        said = integer_field(request, "commitOrRollback")
        if said == Action.NONE:
            return answer(request, ResponseCode.SUCCESS)
        if said not in {Action.COMMIT, Action.ROLLBACK}:
            raise CommandRefusedError(ResponseCode.SYSTEM_ERROR, f"commitOrRollback is {said}")
        if self._broker.room.is_low:
            raise CommandRefusedError(ResponseCode.SYSTEM_BUSY, LOW_ROOM)
        if len(self._waiting) >= WAITING_MAX:
            raise CommandRefusedError(ResponseCode.SYSTEM_BUSY, f"{WAITING_MAX} transactions wait to be ended")
        self._waiting.append(Ending(offset, place, group, Action(said), request, ender))
        self._broker.request_run(self)
        return None

    def waiting(self, count_max: int, first: int = 0) -> tuple[int, int, array[int]]:
        """Return what waits for its end; each that is told takes some 0.5 us.

        Returns:
            How many half messages; their queue, or -1 where none ever was; and the offsets there of the oldest of them
            from `first` on, `count_max` at most.
        """
        progress, pending = self._progress, self._pending
        offsets: array[int] = array("q")
        if progress.half_ref < 0 or not progress.knows_half or not self._is_loaded:
            return 0, -1, offsets
        end = progress.half_end
        offset = pending.next_pending(first, end)
        while offset < end and len(offsets) < count_max:
            offsets.append(offset)
            offset = pending.next_pending(offset + 1, end)
        return pending.count(end), progress.half_ref, offsets

    def is_over(self, offset: int) -> bool:
        """Return whether the half message at an offset of their queue is done with; unknown counts as not."""
        return self._is_loaded and self._pending.is_settled(offset)

    # Work

    def look(self, now_ms: int) -> None:
        """Ask about transactions when it is time to; to be called at intervals."""
        self._is_stuck = False
        self._progress.find()
        if self._progress.half_ref >= 0:
            if self._progress.knows_half:
                self._metrics.pending = self._pending.count(self._progress.half_end)
            if self._work(now_ms, asks=True):
                self._broker.request_run(self)

    def on_ready(self, now_ms: int) -> bool:
        """Do a bit of work; ask for the next turn where there is more, or for another bit in this one."""
        has_more = self._work(now_ms, asks=False)
        if has_more and len(self._waiting) >= WAITING_MANY:
            return True
        if has_more:
            self._broker.request_run(self)
        return False

    def _work(self, now_ms: int, *, asks: bool) -> bool:
        """Read what is known, else end some transactions, and ask about some; return whether there is more to do.

        Where more wait to be ended, it asks only if `asks` says so.
        """
        if self._broker.is_failed:
            return False
        if not self._load():
            return True
        self._progress.find()
        if not self._progress.knows_half:
            return bool(self._waiting)
        has_more = self._end_some(now_ms)
        if self._endings.owed and not self._is_stuck:
            owed = len(self._endings.owed)
            self._endings.pay(now_ms)
            self._is_stuck = len(self._endings.owed) == owed
        if self._is_stuck or self._broker.room.is_low or self._progress.half_ref < 0 or (has_more and not asks):
            return has_more
        found = self._found
        has_more_to_ask, given_up = self._checks.step(self._pending, self._busy, found, self._times, now_ms)
        self._publish(given_up, now_ms)
        found.clear()
        return has_more or has_more_to_ask

    def _load(self) -> bool:
        """Read some of what the log says of half messages that are done with; return whether all of it is read."""
        if self._is_loaded:
            return True
        progress, found = self._progress, self._found
        if not progress.find():
            return False
        if self._load_at < progress.done_end:
            if self._broker.read(progress.done_ref, self._load_at, found, LOAD_COUNT, LOAD_BYTES) != AWAY:
                for i in range(found.count):
                    for offset in decode_done(bytes(found.buf[found.body_start[i] : found.body_end[i]])):
                        if offset < progress.half_end:
                            self._pending.settle(offset)
                self._load_at = found.next_offset
            found.clear()
            return False
        self._is_loaded = True
        progress.mark()
        end = progress.half_end
        self._checks.load(self._pending.advance(end), end)
        waiting = self._pending.count(end)
        if waiting:
            LOGGER.info("transactions wait for their end count=%d", waiting)
        return True

    # Ends

    def _end_some(self, now_ms: int) -> bool:
        """End some of the transactions that wait for it; return whether more of them do."""
        if not self._waiting:
            return False
        endings = self._take_some()
        if not endings:
            return bool(self._waiting)
        offsets = array("q", sorted(endings))
        found = self._found
        done = self._broker.engine.read_offsets(self._progress.half_ref, offsets, len(offsets), found)
        done = 0 if done == AWAY else done
        self._waiting.extendleft(endings[offset] for offset in reversed(offsets[done:]))
        by_offset = {found.queue_offset[i]: i for i in range(found.count)} if done else {}
        rows: list[Row] = []
        for offset in offsets[:done]:
            row = self._check(endings[offset], by_offset.get(offset, -1))
            if row is not None:
                rows.append(row)
        self._publish(rows, now_ms)
        found.clear()
        return bool(self._waiting)

    def _take_some(self) -> dict[int, Ending]:
        """Take the next ends, one for each half message; those that can be answered at once are."""
        taken: dict[int, Ending] = {}
        end = self._progress.half_end
        while self._waiting and len(taken) < COUNT_MAX:
            ending = self._waiting[0]
            offset = ending.offset
            if offset in taken:
                break  # it is busy after this batch
            self._waiting.popleft()
            if not 0 <= offset < end:
                _refuse(ending, ResponseCode.SYSTEM_ERROR, NOT_FOUND)
            elif offset in self._busy:
                self._busy[offset].append(ending)
            elif self._pending.is_settled(offset):
                _accept(ending, "the transaction was ended before")
            else:
                taken[offset] = ending
        return taken

    def _check(self, ending: Ending, i: int) -> Row | None:
        """Return what is to be done for an end, None where it is refused.

        Args:
            ending: How a transaction ended.
            i: Which of the messages that were read is its half one; negative where that is not there.
        """
        found = self._found
        half = read_half(bytes(found.buf[found.properties_start[i] : found.properties_end[i]])) if i >= 0 else None
        if half is None:
            _refuse(ending, ResponseCode.SYSTEM_ERROR, NOT_FOUND)
        elif half.group != ending.group:
            _refuse(ending, ResponseCode.SYSTEM_ERROR, "The producer group wrong")
        elif found.physical_offset[i] != ending.place:
            _refuse(ending, ResponseCode.SYSTEM_ERROR, "The commit log offset wrong")
        elif ending.ender is not None and not _may_end(ending.ender, half):
            _refuse(ending, ResponseCode.NO_PERMISSION, "no permission to send to this topic")
        else:
            return Row(i, half, ending)
        return None

    def _publish(self, rows: Sequence[Row], now_ms: int) -> None:
        """Store how transactions ended; each is done with once that is safe."""
        if not rows:
            return
        for row in rows:
            self._busy[row.ending.offset] = [row.ending]
        for published in self._endings.publish(self._found, rows, now_ms):
            if published.error is not None:
                self._is_stuck = True
                self._settle(published, published.error)
            else:
                self._broker.when_stored(published.ticket, partial(self._settle, published))
        self._progress.mark()

    def _settle(self, published: Published, error: LmqError | None) -> None:
        """Let go of what was stored; what was not waits on, and is asked about again."""
        for ending in published.endings:
            asked = self._busy.pop(ending.offset)
            if error is not None:
                for one in asked:
                    _refuse(one, response_code_of(error), str(error))
                continue
            self._pending.settle(ending.offset)
            self._count(ending.action)
            for one in asked:
                _accept(one, None if one is ending else "the transaction was ended before")
        if error is None:
            if published.owes:
                self._endings.owed += [(ending.offset, ending.action) for ending in published.endings]
                self._broker.request_run(self)
            self._progress.keep(self._pending.advance(self._progress.half_end))

    def _count(self, action: Action) -> None:
        if action == Action.COMMIT:
            self._metrics.commits += 1
        elif action == Action.ROLLBACK:
            self._metrics.rollbacks += 1
        else:
            self._metrics.given_up += 1


def _may_end(ender: Ender, half: Half) -> bool:
    """Return whether a producer may send to where a half message goes."""
    return ender.may_publish_topic(half.space_topic) if half.space_topic else ender.may_publish(half.topic)


def _refuse(ending: Ending, code: int, remark: str) -> None:
    if ending.request is not None and ending.ender is not None:
        ending.ender.answer(ending.request, answer(ending.request, code, remark))


def _accept(ending: Ending, remark: str | None) -> None:
    if ending.request is not None and ending.ender is not None:
        ending.ender.answer(ending.request, answer(ending.request, ResponseCode.SUCCESS, remark))
