"""The queues of a virtual host in the order they came, each with the number of its light queue.

So it is known of many at once which were given messages: the next offsets of all light queues are read in one go each
time, at some 10 ns each, and those of queues are looked up there by number.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Generator, Iterator, Reversible, Sequence, Sized
from typing import Protocol

from core.broker import Broker
from core.long_list import make_long_list
from gateway.amqp.queue_figures import QueueFigures
from gateway.amqp.shared_queue import SharedQueue

BLOCK = 2_048  # light queues whose next offsets are read in one step
FOUND_A_STEP = 1_024  # queues that get numbers, or whose light queues are looked for, in one step
ONE_BY_ONE = 32  # queues whose light queues do not follow each other: each is looked for, 2 us among a million
_UNKNOWN = -1  # the last of `NextOffsets.numbers`, which stands for none


class Queues(Reversible[SharedQueue], Sized, Protocol):
    """The queues of a virtual host, the oldest first; they may come and go while they are walked."""


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
    """The queues of a virtual host, each with a number from 0 that stays its own: all lists of them share it.

    Their light queues are looked for when they are first asked for, a block of queues at a time. Their names are kept
    besides, as a text of each block: a million of them are read there in a tenth of the time.

    Args:
        broker: Where the light queues are.
        queues: The queues.
    """

    def __init__(self, broker: Broker, queues: Queues) -> None:
        self._broker = broker
        self._all = queues
        self.queues: list[SharedQueue] = make_long_list(())
        self.gone = array("i")  # numbers of those that are deleted, as they went
        self.figures = QueueFigures()
        self._in_use = bytearray()  # by number: whether it was opened, and may be so still
        self.touched = bytearray()  # by number: whether it was opened or ruled since its first message was looked at
        self.is_retired = False  # others have taken its place, and give the numbers now
        self._texts: list[str] = []  # by block that is full: its names
        self._refs = array("i")  # by number, of whole blocks
        self._looked = array("i")  # by block: how many of its queues' light queues were looked for
        self._in_a_row = bytearray()  # by block: whether its light queues follow each other
        self._gaps: set[int] = set()  # blocks in which a light queue was not there yet

    def __len__(self) -> int:
        """Return how many numbers are given."""
        return len(self.queues)

    @property
    def is_worn(self) -> bool:
        """Whether most of them are deleted: numbers are better given anew."""
        return len(self.queues) > 2 * len(self._all) + BLOCK

    def take_in(self) -> Iterator[None]:
        """Give numbers to the queues that came after the last one that is still there, some in each step.

        Another may begin while one is under way.
        """
        is_done = False
        while not is_done:
            last = yield from self._find_last()
            is_done = yield from (self._take_all() if last is None else self._take_newer(last))
        for block in self._gaps:  # what was not there is looked for once more
            self._looked[block] = 0
        self._gaps.clear()
        yield

    def _find_last(self) -> Generator[None, None, SharedQueue | None]:
        count = number = len(self.queues)
        while number > 0:
            number -= 1
            if not self.queues[number].is_deleted:
                return self.queues[number]
            if (count - number) % FOUND_A_STEP == 0:
                yield
                if len(self.queues) != count:  # another took some meanwhile, and the last one is among those
                    count = number = len(self.queues)
        return None

    def _take_all(self) -> Generator[None, None, bool]:
        for count, queue in enumerate(self._all, len(self.queues) + 1):
            self._number([queue])
            if count % FOUND_A_STEP == 0:
                yield
                if len(self.queues) != count:  # another went on from here
                    break
        return True

    def _take_newer(self, last: SharedQueue) -> Generator[None, None, bool]:
        """Take what came after a queue; return False where it went, or another took some, meanwhile."""
        count = len(self.queues)
        newer: list[SharedQueue] = make_long_list(())
        for found, queue in enumerate(reversed(self._all), 1):
            if queue is last:
                newer.reverse()
                return (yield from self._number_all(newer))
            newer.append(queue)
            if found % FOUND_A_STEP == 0:
                yield
                if last.is_deleted or len(self.queues) != count:
                    break
        return False

    def _number_all(self, newer: Sequence[SharedQueue]) -> Generator[None, None, bool]:
        """Give numbers to queues that are all that came, in their order; return False where another took some."""
        for first in range(0, len(newer), FOUND_A_STEP):
            self._number(newer[first : first + FOUND_A_STEP])
            count = len(self.queues)
            yield
            if len(self.queues) != count:
                return False
        return True

    def _number(self, newer: Sequence[SharedQueue]) -> None:
        for number, queue in enumerate(newer, len(self.queues)):
            if not self.is_retired:
                queue.row = number
            if queue.is_deleted:
                self.gone.append(number)
            self._in_use.append(queue.opened is not None or queue.is_stream)
            self.touched.append(0)
        self.queues += newer

    def note_gone(self, queue: SharedQueue) -> None:
        """Note that a queue is deleted; one that has no number yet is noted when it gets one."""
        row = queue.row
        if 0 <= row < len(self.queues) and self.queues[row] is queue:
            self.gone.append(row)
            self.figures.end(row)

    def note_opened(self, queue: SharedQueue) -> None:
        """Know nothing any more of what a queue holds, and that it may be read; of one without a number nothing is."""
        row = queue.row
        if 0 <= row < len(self.queues) and self.queues[row] is queue:
            self.figures.forget(row)
            self._in_use[row] = self.touched[row] = 1

    def find_in_use(self, first: int, end: int) -> list[int]:
        """Return the numbers, from one to before another, of queues that are opened or may have readers."""
        found, flags = list[int](), self._in_use
        number = flags.find(1, first, end)
        while number >= 0:
            queue = self.queues[number]
            if not queue.is_deleted and (queue.opened is not None or queue.is_stream or queue.consumers):
                found.append(number)
            else:
                flags[number] = 0  # until it is opened again
            number = flags.find(1, number + 1, end)
        return found

    def names(self, first: int, end: int) -> str:
        """Return the names of the queues from one number to before another, each on a line; breaks in it are blanks."""
        block, at = divmod(first, FOUND_A_STEP)
        if block == len(self._texts) and len(self.queues) >= (block + 1) * FOUND_A_STEP:
            self._texts.append(_join(self.queues[first - at : first - at + FOUND_A_STEP]))
        last = (end - 1) // FOUND_A_STEP
        if last >= len(self._texts):
            return _join(self.queues[first:end])
        if at == 0 and end - first == FOUND_A_STEP:
            return self._texts[block]
        names = "\n".join(self._texts[block : last + 1]).split("\n")
        return "\n".join(names[at : at + end - first])

    def read_names(self) -> Iterator[None]:
        """Have the names of all whole blocks known, one block in each step."""
        while (begin := len(self._texts) * FOUND_A_STEP) + FOUND_A_STEP <= len(self.queues):
            self.names(begin, begin + FOUND_A_STEP)
            yield

    def _look(self, first: int, end: int) -> None:
        """Have the light queues known of the queues from one number to before another."""
        for block in range(first // FOUND_A_STEP, (end - 1) // FOUND_A_STEP + 1):
            begin = block * FOUND_A_STEP
            count = min(FOUND_A_STEP, len(self.queues) - begin)
            if block >= len(self._looked) or self._looked[block] < count:
                self._look_in(block, begin, begin + count)

    def _look_in(self, block: int, begin: int, end: int) -> None:
        while len(self._looked) <= block:
            self._looked.append(0)
            self._in_a_row.append(0)
            self._refs.extend([_UNKNOWN] * FOUND_A_STEP)
        looked = begin + self._looked[block]
        if self._refs[looked] == _UNKNOWN:
            self._find(looked, end)
        refs = self._refs[begin:end]
        if _UNKNOWN in refs:
            self._find_missing(begin, end)
            refs = self._refs[begin:end]
        self._looked[block] = end - begin
        self._in_a_row[block] = _is_row(refs)
        if _UNKNOWN in refs:
            self._gaps.add(block)

    def _find_missing(self, begin: int, end: int) -> None:
        for number in range(begin, end):
            if self._refs[number] == _UNKNOWN:
                self._find(number, number + 1)

    def _find(self, begin: int, end: int) -> None:
        """Find some light queues.

        Most follow each other, as they were made with their queues: so all their names are read and compared at once,
        at a tenth of what it costs to look for each.
        """
        ref = self._refs[begin] = self._broker.find_queue(self.queues[begin].light_name)
        if end - begin == 1:
            return
        names = [queue.light_name for queue in self.queues[begin:end]]
        lines = self._broker.queue_lines(ref, ref + end - begin, b"") if ref >= 0 else b""
        if lines and lines[1:] == b"\n".join(names):
            self._refs[begin:end] = array("i", range(ref, ref + end - begin))
        elif end - begin <= ONE_BY_ONE:
            self._refs[begin:end] = array("i", map(self._broker.find_queue, names))
        else:
            middle = (begin + end) // 2
            self._find(begin, middle)
            self._find(middle, end)

    def _find_row(self, first: int, end: int) -> int:
        """Return the first light queue of queues whose light queues follow each other, else -1."""
        self._look(first, end)
        block = first // FOUND_A_STEP
        is_inside = self._in_a_row[block] and (end - 1) // FOUND_A_STEP == block
        return self._refs[first] if is_inside or _is_row(self._refs[first:end]) else _UNKNOWN

    def ref(self, number: int) -> int:
        """Return the light queue of a queue, -1 where it was not there when it was looked for last."""
        self._look(number, number + 1)
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
        self._look(first, end)
        return self._refs[first:end]

    def next_offsets_now(self, first: int, end: int) -> array[int]:
        """Return what the next offsets of the queues from one number to before another are now, 0 of unknown ones."""
        return self._read(first, end, self._broker.engine.next_offsets, self._broker.max_offset)

    def first_offsets_now(self, first: int, end: int) -> array[int]:
        """Return the first offsets that are kept of the queues from one number to before another, 0 of unknown ones."""
        return self._read(first, end, self._broker.engine.first_offsets, self._broker.min_offset)

    def _read(
        self, first: int, end: int, read: Callable[[int, array[int]], int], read_one: Callable[[int], int]
    ) -> array[int]:  # fmt: skip
        offsets, ref = array("q", bytes(8 * (end - first))), self._find_row(first, end)
        if ref >= 0:
            read(ref, offsets)
            return offsets
        for at, one in enumerate(self._refs[first:end]):
            offsets[at] = read_one(one) if one >= 0 else 0
        return offsets


def _join(queues: Sequence[SharedQueue]) -> str:
    names = "\n".join([queue.name for queue in queues])
    if names.count("\n") == len(queues) - 1:
        return names
    return "\n".join([queue.name.replace("\n", " ") for queue in queues])


def _is_row(refs: array[int]) -> bool:
    """Return whether light queues that there are follow each other."""
    ref, count = refs[0], len(refs)
    return 0 <= ref == refs[-1] - count + 1 and refs == array("i", range(ref, ref + count))
