"""What became of messages that a reader is done with, but for acknowledged ones: expired, dropped or rejected.

Runs of messages that end alike, one after the other, are one entry; an acknowledged message makes none. They are kept
in memory, the latest of some readers: nothing is written for a message. Those of AMQP queues are also in the journal of
pop queues (`core/pop/told_endings.py`).
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

READERS_MAX = 1_024  # the readers with the latest endings; with RUNS_MAX runs of 40 bytes each 5 MB
RUNS_MAX = 128  # of one reader, the latest
ALL = 1 << 62  # above all offsets
PURGED = "purged"
PURGED_OR_DONE = "acknowledged or purged"  # some were taken and done before, which of them is not kept
_FIELDS = 5  # first offset, end, first moment, last moment, reason


Reader = tuple[bytes, bytes]  # light queue, and the reader's name at its door


class Ending(NamedTuple):
    """Why a message ended without an acknowledgement; it was between two moments."""

    reason: str
    from_ms: int
    until_ms: int


class _Runs:
    __slots__ = ("columns", "lost_until")

    def __init__(self, lost_until: int) -> None:
        self.columns = array("q")
        self.lost_until = lost_until


def runs_of(offsets: Sequence[int], count: int) -> Iterator[tuple[int, int]]:
    """Give the runs of the first `count` offsets, each as its first offset and the one after its last."""
    first = end = offsets[0] if count else 0
    for i in range(count):
        offset = offsets[i]
        if offset != end:
            yield first, end
            first = offset
        end = offset + 1
    if count:
        yield first, end


class Endings:
    """Endings by light queue and reader.

    A reader is named by its door: a group, a client, or empty for a queue's own.
    """

    def __init__(self) -> None:
        self._kept: dict[Reader, _Runs] = {}
        self._reasons: list[str] = []
        self._has_lost = False  # readers were forgotten

    def note(self, reader: Reader, offsets: Sequence[int], count: int, reason: str, now_ms: int) -> None:
        """Note that the first `count` of these messages, ascending or nearly so, ended for a reason."""
        for first, end in runs_of(offsets, count):
            self.note_run(reader, first, end, reason, now_ms)

    def note_run(self, reader: Reader, first: int, end: int, reason: str, now_ms: int) -> None:
        """Note that the messages from an offset to before another ended for a reason."""
        if first >= end:
            return
        runs = self._take(reader)
        columns, number = runs.columns, self._number(reason)
        if columns and columns[-4] == first and columns[-1] == number:
            columns[-4], columns[-2] = end, now_ms
            return
        if len(columns) >= RUNS_MAX * _FIELDS:
            runs.lost_until = max(runs.lost_until, columns[1])
            del columns[:_FIELDS]
        columns.extend((first, end, now_ms, now_ms, number))

    def lose(self, reader: Reader, until: int) -> None:
        """Keep nothing of a reader's messages before an offset."""
        runs = self._take(reader)
        runs.lost_until = max(runs.lost_until, until)
        runs.columns = array("q")

    def tell(self, reader: Reader) -> tuple[int, list[tuple[int, int, Ending]]]:
        """Return the offset before which nothing is kept of a reader, and its runs: first offset, end, ending."""
        runs = self._kept.get(reader)
        if runs is None:
            return 0, []
        fields = [runs.columns[at : at + _FIELDS] for at in range(0, len(runs.columns), _FIELDS)]
        return runs.lost_until, [(one[0], one[1], Ending(self._reasons[one[4]], one[2], one[3])) for one in fields]

    @property
    def readers(self) -> Collection[Reader]:
        """The readers of which something is kept, those with the latest endings last."""
        return self._kept.keys()

    @property
    def has_lost(self) -> bool:
        """Whether readers were forgotten, of which nothing is known."""
        return self._has_lost

    def lose_all(self) -> None:
        """Take readers that nothing is kept of as forgotten."""
        self._has_lost = True

    def find(self, queue: bytes, reader: bytes, offset: int) -> Ending | None:
        """Return how a message ended, as far as that is kept; None: it was acknowledged, if `is_kept`."""
        runs = self._kept.get((queue, reader))
        columns = array("q") if runs is None else runs.columns
        for at in range(len(columns) - _FIELDS, -1, -_FIELDS):
            if columns[at] <= offset < columns[at + 1]:
                return Ending(self._reasons[columns[at + 4]], columns[at + 2], columns[at + 3])
        return None

    def is_kept(self, queue: bytes, reader: bytes, offset: int) -> bool:
        """Return whether the ending of a message would be found, if it had one since the start."""
        runs = self._kept.get((queue, reader))
        return not self._has_lost if runs is None else offset >= runs.lost_until

    def _take(self, key: Reader) -> _Runs:
        """Return the runs of a reader, which are the newest now."""
        runs = self._kept.pop(key, None)
        if runs is None:
            runs = _Runs(ALL if self._has_lost else 0)
            if len(self._kept) >= READERS_MAX:
                del self._kept[next(iter(self._kept))]
                self._has_lost = True
        self._kept[key] = runs
        return runs

    def _number(self, reason: str) -> int:
        if reason not in self._reasons:
            self._reasons.append(reason)
        return self._reasons.index(reason)
