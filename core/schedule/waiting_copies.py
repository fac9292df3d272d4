"""Copies of messages that wait, while the messages themselves go on at once: a message is safe when both are.

Source: docs/decisions/0074-copies-that-wait.md.
"""

from __future__ import annotations

from functools import partial
from operator import itemgetter

from core.engine import Engine, Outcome
from core.errors import LmqError
from core.message import FLAG_MARK, FLAG_MARK_MASK, FLAG_RETAIN, PublishBatch, Route

COUNT_MAX = 256  # copies of one append, as many as the timer hands on in one go
_SYS_FLAG_BITS = 0xFFFF
LOST_MAX = 1_024  # lost tickets that are remembered; chosen: each is asked about within a turn or two


class WaitingCopies:
    """Appends batches of which some messages wait somewhere, too.

    Args:
        engine: Keeps the messages.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._batch = PublishBatch(COUNT_MAX)
        self._pending: dict[int, int] = {}  # by ticket of a batch: appends of its copies with no outcome yet
        self._lost: dict[int, LmqError] = {}  # by ticket of a batch: what befell a copy

    def append(self, batch: PublishBatch, now_ms: int) -> None:
        """Append the copies that `batch.waits` names, then the batch; its ticket stands for all of them.

        The copies come first, so that a process that is killed in between has confirmed nothing and lost nothing.

        Raises:
            DiskFullError, MessageTooLargeError: `batch.appended` messages got through with their copies, the rest did
                not, but for copies of them. None did of a batch that `is_whole`, nor any copy.
            StoreClosedError: Nothing is taken any more.
        """
        waits = sorted((wait for wait in batch.waits if wait[0] < batch.count), key=itemgetter(0))
        if batch.is_whole and waits:
            self._append_whole(batch, waits, now_ms)
            return
        tickets: list[int] = []
        count, fault = batch.count, None
        for first in range(0, len(waits), COUNT_MAX):
            chunk = waits[first : first + COUNT_MAX]
            _add_copies(batch, chunk, self._batch)
            try:
                self._engine.append_batch(self._batch, now_ms)
            except LmqError as error:
                fault = error
                batch.count = chunk[self._batch.appended][0]
            tickets.append(self._batch.ticket)
            self._batch.clear()
            if fault is not None:
                break
        try:
            self._append_rest(batch, tickets, now_ms)
        finally:
            batch.count = count
            self._tie_to(batch.ticket, tickets)
        if fault is not None:
            raise fault

    def tie(self, ticket: int, then: Outcome) -> Outcome:
        """Return what is to be told of a ticket: `then`, which also hears of the loss of a copy."""
        if ticket not in self._pending and ticket not in self._lost:
            return then
        return partial(self._tell, ticket, then)

    def _append_whole(self, batch: PublishBatch, waits: list[tuple[int, Route]], now_ms: int) -> None:
        """Append a batch of which all messages are taken or none, and behind it its copies, as one batch."""
        whole = PublishBatch(batch.count + len(waits))
        whole.is_whole = True
        whole.topics, whole.routes = list(batch.topics), list(batch.routes)
        for i in range(batch.count):
            whole.route_index[i] = batch.route_index[i]
            whole.flag[i], whole.sys_flag[i] = batch.flag[i], batch.sys_flag[i]
            _copy_row(batch, i, whole, i)
        whole.count = batch.count
        _add_copies(batch, waits, whole)
        try:
            self._engine.append_batch(whole, now_ms)
        finally:
            batch.appended, batch.ticket = min(whole.appended, batch.count), whole.ticket
            for i in range(batch.appended):
                batch.physical_offset[i], batch.queue_offset[i] = whole.physical_offset[i], whole.queue_offset[i]

    def _append_rest(self, batch: PublishBatch, tickets: list[int], now_ms: int) -> None:
        if batch.count or not tickets:
            self._engine.append_batch(batch, now_ms)
        else:
            batch.appended = 0
            batch.ticket = tickets.pop()

    def _tie_to(self, ticket: int, tickets: list[int]) -> None:
        """Have a ticket stand for those of its copies, too; their outcomes come before its own."""
        if tickets:
            self._pending[ticket] = len(tickets)
        for each in tickets:
            self._engine.when_stored(each, partial(self._note, ticket))

    def _note(self, ticket: int, error: LmqError | None) -> None:
        self._pending[ticket] -= 1
        if not self._pending[ticket]:
            del self._pending[ticket]
        if error is not None:
            if len(self._lost) >= LOST_MAX:
                del self._lost[next(iter(self._lost))]
            self._lost[ticket] = error

    def _tell(self, ticket: int, then: Outcome, error: LmqError | None) -> None:
        then(error or self._lost.get(ticket))


def _add_copies(batch: PublishBatch, waits: list[tuple[int, Route]], into: PublishBatch) -> None:
    """Put a copy of a message behind what `into` has for each place where it waits."""
    into.buf, into.extra, into.origin = batch.buf, batch.extra, batch.origin
    into.born_host = batch.born_host
    index: dict[int, int] = {}
    for at, (i, route) in enumerate(waits, into.count):
        if id(route) not in index:
            index[id(route)] = len(into.routes)
            into.routes.append(route)
            into.topics.append(route.topic)
        into.route_index[at] = index[id(route)]
        flag = batch.flag[i]
        into.flag[at] = flag & ~FLAG_RETAIN if flag & FLAG_MARK_MASK == FLAG_MARK else flag
        # The upper half is MQTT's: of a message at QoS 2 one record alone says under which identifier it came.
        into.sys_flag[at] = batch.sys_flag[i] & _SYS_FLAG_BITS
        _copy_row(batch, i, into, at)
    into.count += len(waits)


def _copy_row(batch: PublishBatch, i: int, into: PublishBatch, at: int) -> None:
    """Say of a message what is the same wherever it goes."""
    into.body_start[at], into.body_end[at] = batch.body_start[i], batch.body_end[i]
    into.extra_start[at], into.extra_end[at] = batch.extra_start[i], batch.extra_end[i]
    into.reconsume_times[at] = batch.reconsume_times[i]
    into.born_ms[at], into.tag[at] = batch.born_ms[i], batch.tag[i]
