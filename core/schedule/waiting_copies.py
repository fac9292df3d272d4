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
                not, but for copies of them.
            StoreClosedError: Nothing is taken any more.
        """
        waits = sorted((wait for wait in batch.waits if wait[0] < batch.count), key=itemgetter(0))
        tickets: list[int] = []
        count, fault = batch.count, None
        for first in range(0, len(waits), COUNT_MAX):
            chunk = waits[first : first + COUNT_MAX]
            self._fill(batch, chunk)
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

    def _fill(self, batch: PublishBatch, waits: list[tuple[int, Route]]) -> None:
        copies = self._batch
        copies.buf, copies.extra, copies.origin = batch.buf, batch.extra, batch.origin
        copies.born_host = batch.born_host
        index: dict[int, int] = {}
        for at, (i, route) in enumerate(waits):
            if id(route) not in index:
                index[id(route)] = len(copies.routes)
                copies.routes.append(route)
                copies.topics.append(route.topic)
            copies.route_index[at] = index[id(route)]
            copies.body_start[at], copies.body_end[at] = batch.body_start[i], batch.body_end[i]
            copies.extra_start[at], copies.extra_end[at] = batch.extra_start[i], batch.extra_end[i]
            flag = batch.flag[i]
            copies.flag[at] = flag & ~FLAG_RETAIN if flag & FLAG_MARK_MASK == FLAG_MARK else flag
            # The upper half is MQTT's: of a message at QoS 2 one record alone says under which identifier it came.
            copies.sys_flag[at], copies.reconsume_times[at] = (
                batch.sys_flag[i] & _SYS_FLAG_BITS,
                batch.reconsume_times[i],
            )
            copies.born_ms[at], copies.tag[at] = batch.born_ms[i], batch.tag[i]
        copies.count = len(waits)

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
