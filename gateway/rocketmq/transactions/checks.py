"""Asks producers how transactions ended that nobody ended: a slice of the half messages' queue a turn.

Source: docs/protocols/rocketmq.md, "Transactions".
"""

from __future__ import annotations

import logging
from array import array
from typing import NamedTuple, Protocol

from core.broker import Broker
from core.message import AWAY, StoredBatch
from core.metrics import TransactionMetrics
from gateway.rocketmq.producer_table import ProducerTable
from gateway.rocketmq.transactions.endings import Action, Ending, Row
from gateway.rocketmq.transactions.half import Half, read_half, show_half
from gateway.rocketmq.transactions.pending import Pending
from gateway.rocketmq.transactions.progress import Progress
from gateway.rocketmq.transactions.rounds import STRETCHES_MAX, Rounds, Stretch
from lmq.remoting.commands import FLAG_ONE_WAY, Command
from lmq.remoting.request_codes import RequestCode

LOGGER = logging.getLogger(__name__)

SLICE = 128  # half messages looked at in one go
STALLS_MAX = 40  # looks in vain for a producer that reads, a quarter of a second apart: 10 s
_ROUNDS_ROW = b"rounds"


class Times(NamedTuple):
    """When producers are asked, and how often."""

    timeout_ms: int
    interval_ms: int
    checks_max: int

    @property
    def gap_ms(self) -> int:
        """How far apart new stretches are begun, so that they stay a few hundred."""
        return self.interval_ms * self.checks_max // STRETCHES_MAX


class RoundRows(Protocol):
    """A durable map, as the store's tables are."""

    def get(self, key: bytes) -> bytes | None:
        """Return the value of `key`, or None."""

    def put(self, key: bytes, value: bytes) -> None:
        """Set the value of `key`."""


class Sweep:
    """One way through a stretch of the queue."""

    def __init__(self, stretch: Stretch | None, cursor: int, end: int, at_ms: int) -> None:
        self.stretch = stretch  # None: what nobody was asked about so far
        self.cursor = cursor
        self.end = end
        self.at_ms = at_ms
        self.has_pending = False
        self.is_stalled = False  # no producer of a group reads what it is sent
        self.stalls = 0


class Checks:
    """Which transactions are asked about next."""

    def __init__(
        self,
        broker: Broker,
        table: RoundRows,
        *,
        progress: Progress,
        producers: ProducerTable,
        broker_name: str,
        metrics: TransactionMetrics,
    ) -> None:
        self._broker = broker
        self._table = table
        self._progress = progress
        self._producers = producers
        self._broker_name = broker_name
        self._metrics = metrics
        self._rounds = Rounds()
        self._saved = b""
        self._sweep: Sweep | None = None
        self._fresh_at_ms = 0  # no new stretch is begun before
        self._seen_until = 0  # half messages before this number were there at `_seen_ms`
        self._seen_ms = 0
        self._looked_at_ms = 0

    def load(self, start: int, end: int) -> None:
        """Go on where the last run ended."""
        self._saved = self._table.get(_ROUNDS_ROW) or b""
        self._rounds.load(self._saved, start, end)

    def look_again(self) -> None:
        """Forget when the next message is to be asked about: the times are others now."""
        self._fresh_at_ms = 0

    def step(
        self, pending: Pending, busy: dict[int, list[Ending]], found: StoredBatch, times: Times, now_ms: int
    ) -> tuple[bool, list[Row]]:
        """Look at one slice.

        Args:
            pending: Which half messages are not done with.
            busy: Those that are being ended.
            found: What the slice is read into; the rows that are returned lie in it.
            times: When producers are asked.
            now_ms: The present moment.

        Returns:
            Whether there is more to do at once, and the messages that are to be given up.
        """
        sweep = self._sweep
        if sweep is None:
            sweep = self._sweep = self._begin(pending, times, now_ms)
            if sweep is None:
                return False, []
        sweep.is_stalled = False
        offsets = self._next_slice(sweep, pending, busy)
        if not offsets:
            self._finish(sweep, times)
            return True, []
        done = self._broker.engine.read_offsets(self._progress.half_ref, offsets, len(offsets), found)
        if done == AWAY:
            return True, []
        self._drop_lost(offsets[:done], pending, found)
        given_up, cursor = self._look(sweep, pending, found, times, now_ms)
        sweep.cursor = cursor if cursor >= 0 else offsets[done - 1] + 1
        if sweep.cursor >= sweep.end:
            self._finish(sweep, times)
        return not sweep.is_stalled, given_up

    @staticmethod
    def _next_slice(sweep: Sweep, pending: Pending, busy: dict[int, list[Ending]]) -> array[int]:
        """Return the next numbers that are to be looked at."""
        offsets: array[int] = array("q")
        offset = sweep.cursor
        while len(offsets) < SLICE:
            offset = pending.next_pending(offset, sweep.end)
            if offset >= sweep.end:
                break
            if offset in busy:
                sweep.has_pending = True
            else:
                offsets.append(offset)
            offset += 1
        return offsets

    def _begin(self, pending: Pending, times: Times, now_ms: int) -> Sweep | None:
        if now_ms < self._looked_at_ms:  # the clock was set back
            self._fresh_at_ms = self._seen_until = 0
        self._looked_at_ms = now_ms
        rounds = self._rounds
        rounds.advance(pending.start)
        stretch = rounds.find_due(now_ms, times.interval_ms)
        if stretch is not None:
            return Sweep(stretch, stretch.first, stretch.end, now_ms)
        end = self._progress.half_end
        first = pending.next_pending(rounds.fresh_from, end)
        if first >= end:
            rounds.fresh_from = end  # all of it is done with
            return None
        if self._seen_until <= first:
            self._seen_until, self._seen_ms = end, now_ms
        if now_ms < self._fresh_at_ms:
            return None
        return Sweep(None, first, end, now_ms)

    def _finish(self, sweep: Sweep, times: Times) -> None:
        self._sweep = None
        rounds = self._rounds
        if sweep.stretch is None:
            if sweep.has_pending:
                rounds.note_first(sweep.end, sweep.at_ms)
                self._fresh_at_ms = max(self._fresh_at_ms, sweep.at_ms + times.gap_ms)
            rounds.fresh_from = max(rounds.fresh_from, sweep.end)
        elif sweep.has_pending:
            rounds.note_again(sweep.stretch, sweep.at_ms)
        else:
            rounds.stretches.remove(sweep.stretch)
        row = rounds.encode()
        if row != self._saved:
            self._saved = row
            self._table.put(_ROUNDS_ROW, row)

    def _drop_lost(self, offsets: array[int], pending: Pending, found: StoredBatch) -> None:
        """Count those as done with that the log does not have any more."""
        lost = set(offsets).difference(found.queue_offset[: found.count])
        for offset in lost:
            LOGGER.warning("a half message is lost to damage number=%d", offset)
            pending.settle(offset)

    def _look(
        self, sweep: Sweep, pending: Pending, found: StoredBatch, times: Times, now_ms: int
    ) -> tuple[list[Row], int]:
        """Ask about the messages that were read.

        Returns:
            Those that are given up, and the number to go on at where it was not all of them, else -1.
        """
        given_up: list[Row] = []
        for i in range(found.count):
            offset = found.queue_offset[i]
            store_ms = found.store_ms[i]
            if offset < self._seen_until:
                store_ms = min(store_ms, self._seen_ms)  # the clock was set back
            if sweep.stretch is None and store_ms + times.timeout_ms > now_ms:
                sweep.end = offset
                self._fresh_at_ms = store_ms + times.timeout_ms
                return given_up, offset
            half = read_half(bytes(found.buf[found.properties_start[i] : found.properties_end[i]]))
            if half is None:
                LOGGER.warning("a half message names no topic, dropping it number=%d", offset)
                pending.settle(offset)
                continue
            asked_from_ms = store_ms + half.immunity_ms if half.immunity_ms >= 0 else 0
            if asked_from_ms > now_ms:
                sweep.has_pending = True
                continue
            count = sweep.stretch.count_since(asked_from_ms, times.interval_ms) if sweep.stretch is not None else 0
            if count >= times.checks_max:
                ending = Ending(offset, found.physical_offset[i], half.group, Action.GIVE_UP)
                given_up.append(Row(i, half, ending))
            elif not self._ask(sweep, found, i, half):
                return given_up, offset
            sweep.has_pending = True
        return given_up, -1

    def _ask(self, sweep: Sweep, found: StoredBatch, i: int, half: Half) -> bool:
        """Ask a producer of the message's group; return whether that is done with."""
        group = half.group.decode(errors="replace")
        client = self._producers.take_next(group)
        if client is None:
            if self._producers.has_members(group) and sweep.stalls < STALLS_MAX:
                sweep.stalls += 1
                sweep.is_stalled = True
                return False
            self._metrics.unasked += 1
            return True
        place = found.physical_offset[i]
        host = self._broker.store_host.hex().upper()
        key = half.key.decode(errors="replace")
        ext = {
            "topic": half.topic.decode(errors="replace"),
            "tranStateTableOffset": str(found.queue_offset[i]),
            "commitLogOffset": str(place),
            "msgId": key,
            "transactionId": key,
            "offsetMsgId": f"{host}{place:016X}",
            "bname": self._broker_name,
        }
        record = show_half(bytes(found.buf[found.record_start[i] : found.record_end[i]]), half)
        client.send(Command(RequestCode.CHECK_TRANSACTION_STATE, flag=FLAG_ONE_WAY, ext=ext, body=record))
        self._metrics.checks += 1
        return True
