"""The readers that wait for light queues to grow, and the rounds in which they run at the end of a turn."""

from __future__ import annotations

from collections.abc import Callable

from core.engine import Engine
from core.lmq.awaited_queues import AwaitedQueues
from core.lmq.waiters import Reader, Waiters

ROUNDS_MAX = 8  # so often a reader with more to do is run in one turn, before others have theirs
READERS_MAX = 512  # that run in one turn; the rest come first in the next
_ROUNDS_MAX = ROUNDS_MAX
_READERS_MAX = READERS_MAX


def _nothing() -> None:
    return


def _raise(_reader: Reader, error: Exception) -> None:
    raise error


class ReaderTurns:
    """The readers of one engine's queues. `schedule` is called when they have work, `run_readers` does it.

    The broker is one: what it appends wakes readers, with no call in between.

    Args:
        engine: Has the queues, and tells which grew.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        engine.request_turn = self.request_turn
        self.schedule: Callable[[], None] = _nothing
        self.on_reader_error: Callable[[Reader, Exception], None] = _raise
        self.has_work = False  # readers have; `schedule` was called for it
        self._waiters = Waiters()
        self._grown: list[int] = []
        self._shown: list[int] = []
        self._requested: dict[int, Reader] = {}
        self._awaited = AwaitedQueues(engine.queue_count, engine.queue_key)
        self._is_awaited = False  # some queue may be
        self._put_off: dict[int, Reader] = {}  # by the last turn, which had more to do than fits one

    def park(self, queue_ref: int, reader: Reader) -> None:
        """Call `reader.on_ready` at the end of each turn in which the queue grew, until `unpark`."""
        self._waiters.park(queue_ref, reader)
        self.engine.watch(queue_ref, on=True)

    def unpark(self, queue_ref: int, reader: Reader) -> None:
        """Take back `park`; harmless where the reader is not parked."""
        self._waiters.unpark(queue_ref, reader)
        if not self._waiters.is_waited_for(queue_ref):
            self.engine.watch(queue_ref, on=False)

    def reader_count(self, queue_ref: int) -> int:
        """Return how many wait for messages of a queue."""
        counts = [reader.reader_count() for reader in self._waiters.parked(queue_ref)]
        return sum(counts)

    def reader_counts(self, first: int, end: int) -> list[int]:
        """Return how many wait for messages of each queue from one number to before another."""
        return self._waiters.reader_counts(first, end)

    def await_queue(self, key: bytes, reader: Reader) -> None:
        """Call `reader.on_ready` once, after the queue `key`, which is not there, was made to publish to it."""
        self._awaited.add(key, reader)
        self._is_awaited = True

    def forget_awaited(self, key: bytes, reader: Reader) -> None:
        """Take back `await_queue`; harmless where the reader does not wait."""
        self._awaited.discard(key, reader)

    def request_run(self, reader: Reader) -> None:
        """Call `reader.on_ready` in the next turn even if nothing grew."""
        self._requested[id(reader)] = reader
        self._wake_up()

    def cancel_run(self, reader: Reader) -> None:
        """Forget a `request_run` that was not met yet, and that its queue grew."""
        self._requested.pop(id(reader), None)
        self._put_off.pop(id(reader), None)

    def request_turn(self) -> None:
        """Have `run_turn` called though no reader has work: the engine has."""
        self._wake_up()

    def _on_shown(self, queue_ref: int) -> None:
        """Wake the readers that wait for messages that were given back, as for new ones."""
        self._shown.append(queue_ref)
        self._wake_up()

    def _wake_up(self) -> None:
        if not self.has_work:
            self.has_work = True
            self.schedule()

    def run_readers(self, now_ms: int) -> None:
        """Run each reader that has work; one reader's fault goes to `on_reader_error` and stops nobody else.

        A reader with more to read is called again in the next round: readers of queues that hold the same messages stay
        side by side, and share what one of them has read.
        """
        if self._is_awaited:
            self._requested.update(self._awaited.take_made())
            self._is_awaited = len(self._awaited) > 0
        self._run_rounds(self._take_ready(), now_ms)

    def _take_ready(self) -> list[Reader]:
        """Return the readers that run now: their queue grew or was given messages back, or they asked to."""
        grown = self._grown
        self.engine.take_grown(grown)
        if self._shown:
            grown += self._shown
            self._shown.clear()
        ready = self._waiters.wake(grown)
        ready.update(self._requested)
        self._requested.clear()
        grown.clear()
        if self._put_off or len(ready) > _READERS_MAX:
            ready = self._put_some_off({**self._put_off, **ready})  # old before new: else some would never run
        return list(ready.values())

    def _put_some_off(self, ready: dict[int, Reader]) -> dict[int, Reader]:
        """Return those of `ready` that fit one turn; the others run in the next, before any that come then."""
        items = list(ready.items())
        self._put_off = dict(items[_READERS_MAX:])
        if self._put_off:
            self._wake_up()
        return dict(items[:_READERS_MAX])

    def _run_rounds(self, readers: list[Reader], now_ms: int) -> None:
        """Run each of `readers` eight times at most; one that has even more to do runs in the next turn."""
        for _ in range(_ROUNDS_MAX):
            if not readers:
                return
            readers = [reader for reader in readers if self._run_reader(reader, now_ms)]
        for reader in readers:
            self.request_run(reader)

    def _run_reader(self, reader: Reader, now_ms: int) -> bool:
        """Run a reader once; return whether it has more to do."""
        try:
            return reader.on_ready(now_ms)
        except Exception as error:  # noqa: BLE001 - whatever it is, the other readers go on
            self.on_reader_error(reader, error)
            return False
