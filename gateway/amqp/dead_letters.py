"""Dead letters: what a queue rejects or outlives goes on to an exchange.

The dead letter is in the log, as safe as the settings say, before the message that it was is done. Where a process is
killed between the two, the letter itself says at the next start that its message is done.

Source: docs/protocols/amqp.md, "Dead letters".
"""

from __future__ import annotations

from array import array
from collections import deque
from functools import partial
from typing import NamedTuple

from core.broker import Broker
from core.errors import LmqError, MessageTooLargeError, ReceiptError
from core.lmq.waiters import Reader
from core.message import AWAY, PublishBatch, StoredBatch
from gateway.amqp.letters import Burial, LetterWriter, Surroundings
from gateway.amqp.open_letters import OpenLetters
from gateway.amqp.queue_ties import Dying

TURN_MESSAGES = 128  # dealt with in one turn of a virtual host: a millisecond or two
TURN_BYTES = 1 << 20  # of bodies, and one message more
RETRY_MS = 1_000  # what could not be stored is tried again after that; chosen: room does not come back sooner


class LetterDesk:
    """What dead letters are written with; all virtual hosts have the same, each for the time of one turn."""

    def __init__(self, broker: Broker) -> None:
        self.stored = StoredBatch(TURN_MESSAGES)
        self.batch = PublishBatch(TURN_MESSAGES)
        self.writer = LetterWriter(broker, self.batch)
        self.open = OpenLetters(broker)


class Piece(NamedTuple):
    """Messages of one queue whose letters are in a batch.

    Args:
        queue: Where they are.
        offsets: They, ascending.
        sent: Those of them that have a letter; the others go nowhere.
        first: The place of the first of these letters.
        reason: Why they died.
    """

    queue: Dying
    offsets: array[int]
    sent: list[int]
    first: int
    reason: bytes

    def count_stored(self, appended: int) -> int:
        """Return how many letters it has among the first `appended` of the batch."""
        return min(max(appended - self.first, 0), len(self.sent))

    def count_done(self, appended: int) -> int:
        """Return how many of the messages are dealt with where the first `appended` letters of the batch are stored."""
        stored = self.count_stored(appended)
        return len(self.offsets) if stored == len(self.sent) else self.offsets.index(self.sent[stored])

    def give_back(self, done: int, too_large: int, retry_ms: int) -> None:
        """Give the messages behind the first `done` to the queue again, to die once more from `retry_ms` on.

        Where the letter at the place `too_large` of the batch has no room in a record, none of the others waits: it
        would be before them each time, and none of them would ever be stored.
        """
        left = self.offsets[done:]
        late = len(left) if too_large < 0 else int(self.first <= too_large < self.first + len(self.sent))
        if late:
            self.queue.pop.nack_many(left[:late], late, retry_ms)
        if late < len(left):
            self.queue.pop.nack_many(left[late:], len(left) - late)


class DeadLetters(Reader):
    """Stores the dead letters of all queues of a virtual host, those of one turn with one append."""

    def __init__(self, broker: Broker, vhost: Surroundings, desk: LetterDesk) -> None:
        self._broker = broker
        self._vhost = vhost
        self._metrics = broker.metrics.door("amqp")
        self._stored = desk.stored
        self._batch = desk.batch
        self._writer = desk.writer
        self._open = desk.open
        self._waiting: deque[Burial] = deque()

    def bury(self, queue: Dying, hidden: array[int], count: int, reason: bytes, now_ms: int) -> None:
        """Let the first `count` of these messages of a queue, which are hidden, go on as dead letters in this turn.

        They stay hidden meanwhile: no consumer is to have what was rejected for good.
        """
        exchange = self._vhost.exchanges.find(queue.terms.dead_letter_exchange or "")
        offsets = array("q", sorted(hidden[:count]))
        if exchange is None:
            self._metrics.drop("unroutable", count)
            _finish(queue, offsets, None)
            return
        self._waiting.append(Burial(queue, exchange, offsets, reason, now_ms // 1000))
        self._broker.request_run(self)

    def on_ready(self, now_ms: int) -> bool:
        """Store letters; called by the broker. Where there are many, the rest has its turns soon."""
        self._work(now_ms)
        if self._waiting:
            self._broker.request_run(self)
        return False

    def finish(self, now_ms: int) -> None:
        """Store all that can be read, at the end of the process."""
        while self._waiting and self._work(now_ms):
            pass

    def _work(self, now_ms: int) -> int:
        """Store the letters of some messages; return how many messages are dealt with."""
        self._writer.begin(now_ms)
        pieces: list[Piece] = []
        left = TURN_MESSAGES
        while self._waiting and left > 0 and self._writer.body_bytes < TURN_BYTES:
            burial = self._waiting.popleft()
            if burial.queue.is_deleted:
                continue
            count = self._read(burial, left)
            if count == AWAY:  # asked for again in the next turn
                self._waiting.append(burial)
                break
            pieces.append(self._write(burial, count))
            left -= len(pieces[-1].offsets)
            if burial.offsets:
                self._waiting.appendleft(burial)
        self._writer.end()
        if pieces:
            self._append(pieces, now_ms)
        self._batch.clear()
        return TURN_MESSAGES - left

    def _read(self, burial: Burial, count_max: int) -> int:
        """Read the next messages of a burial; return how many of its offsets they are."""
        offsets = burial.offsets[:count_max]
        return burial.queue.pop.read_offsets(offsets, len(offsets), self._stored)

    def _write(self, burial: Burial, count: int) -> Piece:
        """Write the letters of what was read, not more than a turn has; the rest of the burial is left."""
        stored, writer = self._stored, self._writer
        first = self._batch.count
        sent: list[int] = []
        lost = 0
        writer.begin_burial()
        for i in range(stored.count):
            offset = stored.queue_offset[i]
            if writer.body_bytes >= TURN_BYTES:
                count = burial.offsets.index(offset)
                break
            if writer.write(burial, self._vhost, stored, i):
                sent.append(offset)
            else:
                lost += 1
        if lost:
            self._metrics.drop("unroutable", lost)
        stored.clear()
        piece = Piece(burial.queue, burial.offsets[:count], sent, first, burial.reason)
        burial.offsets = burial.offsets[count:]
        return piece

    def _append(self, pieces: list[Piece], now_ms: int) -> None:
        """Store the batch; its messages are done when their letters are safe, and what found no room comes again."""
        batch = self._batch
        too_large = -1
        number = self._open.begin() if batch.count else 0
        if batch.count:
            try:
                self._broker.publish_batch(batch, now_ms)
            except LmqError as error:
                too_large = batch.appended if isinstance(error, MessageTooLargeError) else -1
                self._metrics.refuse("dead_letter", batch.count - batch.appended)
        done: list[tuple[Dying, array[int], bytes]] = []
        for piece in pieces:
            self._metrics.bury(piece.reason.decode(), piece.count_stored(batch.appended))
            count = piece.count_done(batch.appended)
            if count:
                done.append((piece.queue, piece.offsets[:count], piece.reason))
            if count < len(piece.offsets) and not piece.queue.is_deleted:
                piece.give_back(count, too_large, now_ms + RETRY_MS)
        if batch.appended:
            self._broker.when_stored(batch.ticket, partial(self._finish_all, done, number, now_ms))
        else:
            self._finish_all(done, number, now_ms, None)

    def _finish_all(
        self, done: list[tuple[Dying, array[int], bytes]], number: int, now_ms: int, error: Exception | None
    ) -> None:
        """Finish messages whose dead letters are stored, or give them again where these are lost."""
        for queue, offsets, reason in done:
            with self._broker.pop.ending_as(reason.decode(), now_ms):
                _finish(queue, offsets, error)
        self._open.end(number)


def _finish(queue: Dying, offsets: array[int], error: Exception | None) -> None:
    if queue.is_deleted:
        return
    try:
        if error is None:
            queue.pop.ack_many(offsets, len(offsets))
        else:
            queue.pop.nack_many(offsets, len(offsets))
    except ReceiptError:
        return  # purged or dropped meanwhile
