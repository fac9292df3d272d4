"""The queues of a virtual host in the order they came, each with the number of its light queue.

So it is known of many at once which were given messages: the next offsets of all light queues are read in one go each
time, at some 10 ns each, and those of queues are looked up there by number.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from functools import partial
from itertools import takewhile
from operator import is_not

from core.broker import Broker
from core.long_list import make_long_list
from gateway.amqp.queues import VirtualHost
from gateway.amqp.shared_queue import SharedQueue

BLOCK = 2_048  # light queues whose next offsets are read in one step
FOUND_A_STEP = 1_024  # queues whose light queues are looked for, 0.3 us each
_UNKNOWN = -1  # the last of `NextOffsets.numbers`, which stands for none


class NextOffsets:
    """The next offsets of all light queues, as they were when they were read last.

    Args:
        broker: Where they are.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.numbers = array("q", [0])

    def read(self) -> Iterator[None]:
        """Read them anew, some in each step."""
        numbers = array("q")
        for start in range(0, self._broker.queue_count(), BLOCK):
            block = array("q", bytes(8 * BLOCK))
            numbers += block[: self._broker.engine.next_offsets(start, block)]
            yield
        numbers.append(0)
        self.numbers = numbers


class QueueRows:
    """The queues of a virtual host, each with a number from 0 that stays its own.

    Args:
        broker: Where the light queues are.
        vhost: The virtual host.
    """

    def __init__(self, broker: Broker, vhost: VirtualHost) -> None:
        self._broker = broker
        self._vhost = vhost
        self.queues: list[SharedQueue] = make_long_list(())
        self._refs = array("i")  # by number
        self._breaks = array("i")  # numbers whose light queue does not follow the one before
        self._unknown: list[int] = []  # of which the light queue is not there yet

    def __len__(self) -> int:
        """Return how many numbers are given."""
        return len(self._refs)

    @property
    def is_worn(self) -> bool:
        """Whether most of them are deleted: numbers are better given anew."""
        return len(self.queues) > 2 * len(self._vhost) + BLOCK

    def take_in(self) -> Iterator[None]:
        """Give numbers to the queues that came after the last one that is still there, some in each step.

        Another may begin while one is under way.
        """
        last = next((queue for queue in reversed(self.queues) if not queue.is_deleted), None)
        if last is None:
            for count, queue in enumerate(self._vhost, len(self.queues) + 1):
                self.queues.append(queue)
                if count % FOUND_A_STEP == 0:
                    yield
                    if len(self.queues) != count:  # another went on from here
                        break
        else:
            self.queues += list(takewhile(partial(is_not, last), reversed(self._vhost)))[::-1]
        if self._unknown:
            self._unknown = [number for number in self._unknown if not self._find(number)]
            self._breaks = array("i", filter(self._is_break, range(1, len(self._refs))))
        while (begin := len(self._refs)) < len(self.queues):
            for number in range(begin, min(begin + FOUND_A_STEP, len(self.queues))):
                self._refs.append(_UNKNOWN)
                if not self._find(number):
                    self._unknown.append(number)
                if number and self._is_break(number):
                    self._breaks.append(number)
            yield

    def _find(self, number: int) -> bool:
        found = self._refs[number] = self._broker.find_queue(self.queues[number].light_name)
        return found != _UNKNOWN

    def _is_break(self, number: int) -> bool:
        return self._refs[number] != self._refs[number - 1] + 1

    def _find_row(self, first: int, end: int) -> int:
        """Return the first light queue of queues whose light queues follow each other, else -1."""
        breaks = self._breaks
        is_row = bisect_right(breaks, first) == bisect_right(breaks, end - 1)
        return self._refs[first] if is_row else _UNKNOWN

    def ref(self, number: int) -> int:
        """Return the light queue of a queue, -1 where it was not there when queues were last taken in."""
        return self._refs[number]

    def next_offsets(self, first: int, end: int, known: NextOffsets) -> array[int]:
        """Return the next offsets of the queues from one number to before another, 0 of what came after `known`."""
        numbers, ref = known.numbers, self._find_row(first, end)
        if ref >= 0 and ref + end - first < len(numbers):
            return numbers[ref : ref + end - first]
        refs = self._refs[first:end]
        try:
            return array("q", map(numbers.__getitem__, refs))
        except IndexError:
            return array("q", [numbers[ref] if ref < len(numbers) else 0 for ref in refs])

    def refs(self, first: int, end: int) -> array[int]:
        """Return the light queues of the queues from one number to before another, as `ref`."""
        return self._refs[first:end]

    def next_offsets_now(self, first: int, end: int) -> array[int]:
        """Return what the next offsets of the queues from one number to before another are now, 0 of unknown ones."""
        offsets, ref = array("q", bytes(8 * (end - first))), self._find_row(first, end)
        if ref >= 0:
            self._broker.engine.next_offsets(ref, offsets)
            return offsets
        for at, one in enumerate(self._refs[first:end]):
            offsets[at] = self._broker.max_offset(one) if one >= 0 else 0
        return offsets
