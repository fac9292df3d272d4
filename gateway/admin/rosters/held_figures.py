"""What lies in AMQP queues, told of many at once: only those are asked that changed since they were asked last.

Nothing is marked where messages go by: the next offsets of queues say which were given any, and a queue that is opened
to be consumed from is forgotten (`QueueFigures`), and asked each time.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from operator import add, sub
from typing import NamedTuple

from gateway.admin.queue_ends import NO_ENDS, find_ends_of, find_resting
from gateway.amqp.inventory import count_again, count_given, count_messages
from gateway.amqp.queue_figures import BLOCK, FigureBlock
from gateway.amqp.queues import VirtualHost
from gateway.amqp.shared_queue import SharedQueue

ASKED_A_STEP = 32  # some microseconds each
_NOTHING = array("q", bytes(8 * BLOCK))
_NO_BYTES = array("d", bytes(8 * BLOCK))


class Held(NamedTuple):
    """What lies in some queues, in the order of their numbers."""

    next_offsets: Sequence[int]
    ready: Sequence[int]  # messages that could be taken now
    unacked: Sequence[int]  # that consumers have
    oldest_ms: Sequence[int]  # when the first ready one was stored, 0: there is none; anything where that is not asked
    newest_ms: Sequence[int]
    body_bytes: Sequence[float]  # of one message, about
    given: Sequence[int]  # messages that ever came
    again: Sequence[int]  # times that consumers got messages once more

    def messages(self) -> Sequence[int]:
        """Return how many messages each queue has, those of consumers, too."""
        if self.unacked == _NOTHING[: len(self.unacked)]:
            return self.ready
        return list(map(add, self.ready, self.unacked))

    def left(self) -> Sequence[int]:
        """Return how many messages left each queue: they are done, or were dropped."""
        return _subtract(self.given, self.messages())

    def delivered(self) -> Sequence[int]:
        """Return how many messages were taken from each queue, counted each time."""
        taken = _subtract(self.given, self.ready)
        return taken if self.again == _NOTHING[: len(self.again)] else list(map(add, taken, self.again))


class HeldFigures:
    """Reads them.

    Args:
        vhost: The virtual host whose queues they are.
    """

    def __init__(self, vhost: VirtualHost) -> None:
        self._vhost = vhost
        self._rows = vhost.rows

    def is_known(self, first: int, end: int, *, is_seen: bool) -> bool:
        """Return whether no queue from one number to before another has to be asked.

        Args:
            first: The first number.
            end: The number behind the last one.
            is_seen: Whether moments and lengths are wanted, too.
        """
        at, count = first % BLOCK, end - first
        if at + count > BLOCK:
            middle = first - at + BLOCK
            return self.is_known(first, middle, is_seen=is_seen) and self.is_known(middle, end, is_seen=is_seen)
        offsets = self._rows.next_offsets_now(first, end)
        if self._is_idle(offsets):
            return True
        block = self._rows.figures.find(first // BLOCK)
        return block is not None and offsets == (block.seen_at if is_seen else block.counted_at)[at : at + count]

    def _is_idle(self, offsets: array[int]) -> bool:
        """Return whether no message ever came to queues with these next offsets; levels have their own."""
        return offsets == _NOTHING[: len(offsets)] and not self._vhost.broker.detours.levels.asked

    def glance(self, first: int, end: int) -> tuple[Held, Sequence[int]]:
        """Return what is known of the queues of one block, and the places in it of those of which not all is known."""
        at, count = first % BLOCK, end - first
        offsets = self._rows.next_offsets_now(first, end)
        nothing = _NOTHING[:count]
        if self._is_idle(offsets):
            return Held(offsets, nothing, nothing, nothing, nothing, _NO_BYTES[:count], nothing, nothing), ()
        block, span = self._rows.figures.get(first // BLOCK), slice(at, at + count)
        unknown: Sequence[int] = ()
        if offsets != block.seen_at[span]:
            pairs = zip(offsets, block.seen_at[span], strict=True)
            unknown = [place for place, (offset, known) in enumerate(pairs) if offset != known]
        columns = block.ready[span], nothing, block.oldest_ms[span], block.newest_ms[span], block.body_bytes[span]
        return Held(offsets, *columns, block.given[span], nothing), unknown

    def read(self, first: int, end: int, *, is_seen: bool) -> Held:
        """Return what lies in the queues from one number to before another; deleted ones have anything."""
        at, count = first % BLOCK, end - first
        if at + count > BLOCK:
            middle = first - at + BLOCK
            pieces = self.read(first, middle, is_seen=is_seen), self.read(middle, end, is_seen=is_seen)
            return Held(*([*low, *high] for low, high in zip(*pieces, strict=True)))  # type: ignore[arg-type] # by column
        offsets = self._rows.next_offsets_now(first, end)
        if self._is_idle(offsets):
            return Held(offsets, offsets, offsets, offsets, offsets, _NO_BYTES[:count], offsets, offsets)
        block = self._rows.figures.get(first // BLOCK)
        known = (block.seen_at if is_seen else block.counted_at)[at : at + count]
        unacked, again = _NOTHING[:count], _NOTHING[:count]
        if offsets != known:
            kept_from = self._rows.first_offsets_now(first, end)
            for place, offset in enumerate(offsets):
                if offset != known[place]:
                    number, kept = first + place, kept_from[place]
                    unacked[place] = (self._see if is_seen else self._count)(block, number, offset, kept)
                    again[place] = count_again(self._rows.queues[number])
        span = slice(at, at + count)
        seen = block.oldest_ms[span], block.newest_ms[span], block.body_bytes[span]
        return Held(offsets, block.ready[span], unacked, *seen, block.given[span], again)

    def pick(self, numbers: Sequence[int], *, is_seen: bool) -> Held | None:
        """Return what lies in queues with these numbers, wherever they are; None where one of them has to be asked."""
        if self._vhost.broker.detours.levels.asked:
            return None
        figures, broker, find_ref = self._rows.figures, self._vhost.broker, self._rows.ref
        found: list[tuple[int, int, int, int, int, float, int, int]] = []
        for number in numbers:
            ref, at = find_ref(number), number % BLOCK
            offset = broker.max_offset(ref) if ref >= 0 else 0
            block = figures.find(number // BLOCK)
            if not offset:
                found.append((0, 0, 0, 0, 0, 0.0, 0, 0))
            elif block is not None and offset == (block.seen_at if is_seen else block.counted_at)[at]:
                row = block.ready[at], 0, block.oldest_ms[at], block.newest_ms[at], block.body_bytes[at]
                found.append((offset, *row, block.given[at], 0))
            else:
                return None
        return Held(*zip(*found, strict=True)) if found else None

    def take_in(self, first: int, end: int) -> Iterator[None]:
        """Have all known of the queues of one block, some in each step, but of those that consumers take from."""
        if self.is_known(first, end, is_seen=True):
            return
        block = self._rows.figures.get(first // BLOCK)
        for begin in range(first, end, ASKED_A_STEP):
            until = min(begin + ASKED_A_STEP, end)
            offsets, kept_from = self._rows.next_offsets_now(begin, until), self._rows.first_offsets_now(begin, until)
            for number, offset, kept in zip(range(begin, until), offsets, kept_from, strict=True):
                queue = self._rows.queues[number]
                if offset != block.seen_at[number % BLOCK] and queue.opened is None and not queue.terms.priority_max:
                    self._see(block, number, offset, kept)
            yield

    def read_one(self, queue: SharedQueue, *, is_seen: bool) -> Held:
        """Return what lies in one queue, which may have no number yet."""
        number, broker, vhost = queue.row, self._vhost.broker, self._vhost
        if 0 <= number < len(self._rows) and self._rows.queues[number] is queue:
            block, at = self._rows.figures.find(number // BLOCK), number % BLOCK
            ref = self._rows.ref(number)
            offset = broker.max_offset(ref) if ref >= 0 else 0
            if block is not None and offset == (block.seen_at if is_seen else block.counted_at)[at]:
                seen = (block.oldest_ms[at],), (block.newest_ms[at],), (block.body_bytes[at],)
                return Held((offset,), (block.ready[at],), (0,), *seen, (block.given[at],), (0,))
            return self.read(number, number + 1, is_seen=is_seen)
        queue_ref = broker.find_queue(queue.light_name)
        ready, unacked = count_messages(broker, vhost, queue)
        ends = find_ends_of(broker, vhost, queue) if is_seen else NO_ENDS
        return Held(
            [broker.max_offset(queue_ref) if queue_ref >= 0 else 0],
            [ready],
            [unacked],
            [ends.oldest_at_ms or 0],
            [ends.newest_at_ms or 0],
            [ends.body_bytes],
            [count_given(broker, queue, queue_ref)],
            [count_again(queue)],
        )

    def _count(self, block: FigureBlock, number: int, offset: int, first: int) -> int:
        """Note how many messages lie in a queue; return how many of it consumers have.

        Args:
            block: Where it is noted.
            number: The queue's.
            offset: Its next offset.
            first: The first one that is kept.
        """
        queue, at, pops = self._rows.queues[number], number % BLOCK, self._vhost.pops
        is_still, place = queue.opened is None and not queue.terms.priority_max, -1
        if is_still and queue.is_open:
            place = pops.resting_at(queue.light_name, queue.first_offset)
        elif is_still and not pops.knows(queue.light_name):  # nothing was ever taken in it: it is not opened for that
            place = queue.first_offset
        if place >= 0 and not queue.is_deleted:
            unacked, block.ready[at] = 0, max(offset - max(place, first), 0)
            block.given[at] = max(offset - queue.first_offset, 0)
        else:
            block.ready[at], unacked = count_messages(self._vhost.broker, self._vhost, queue)
            block.given[at] = count_given(self._vhost.broker, queue, self._rows.ref(number))
            is_still = is_still and queue.opened is None and (queue.is_open or not offset)
        block.counted_at[at] = offset if is_still else -1
        return unacked

    def _see(self, block: FigureBlock, number: int, offset: int, first: int) -> int:
        """Note the moments and lengths of its messages, too."""
        broker, vhost, queue, at = self._vhost.broker, self._vhost, self._rows.queues[number], number % BLOCK
        place = self._find_rest(queue, offset, first)
        if place >= 0:
            unacked, block.ready[at] = 0, max(offset - max(place, first), 0)
            block.given[at], block.counted_at[at] = max(offset - queue.first_offset, 0), offset
            ends = find_resting(broker, self._rows.ref(number), place, queue.first_offset)
        else:
            unacked = self._count(block, number, offset, first)
            ends = find_ends_of(broker, vhost, queue)
        block.oldest_ms[at], block.newest_ms[at] = ends.oldest_at_ms or 0, ends.newest_at_ms or 0
        block.body_bytes[at] = ends.body_bytes
        is_here = ends.oldest_at_ms is not None or not block.ready[at]  # else it is on its way
        block.seen_at[at] = block.counted_at[at] if is_here else -1  # that is -1 where it was opened to look
        return unacked

    def _find_rest(self, queue: SharedQueue, offset: int, first: int) -> int:
        """Return before which offset all of a queue is done that has messages; -1 where any is in flight, or may be."""
        if queue.is_deleted or queue.opened is not None or queue.terms.priority_max or offset <= first:
            return -1
        self._vhost.open(queue)
        return self._vhost.pops.resting_at(queue.light_name, queue.first_offset) if queue.is_open else -1


def _subtract(numbers: Sequence[int], others: Sequence[int]) -> array[int]:
    """Return by how much each of some numbers is more than the other in its place, 0 where it is less.

    An array has its ends found in a third of the time, which is what a first page asks for.
    """
    found = array("q", map(sub, numbers, others))
    return found if min(found, default=0) >= 0 else array("q", [max(number, 0) for number in found])
