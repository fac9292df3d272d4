from __future__ import annotations

from core.errors import StoreClosedError
from gateway.rocketmq.transactions.progress import MARK_EVERY, MARKS_MAX, PLACES_GROUP, Progress


class Offsets:
    def __init__(self) -> None:
        self.rows: dict[tuple[bytes, bytes], int] = {}

    def get(self, group: bytes, key: bytes) -> int | None:
        return self.rows.get((group, key))

    def commit(self, group: bytes, key: bytes, offset: int) -> None:
        self.rows[group, key] = offset


class Queues:
    """Two queues that grow."""

    def __init__(self) -> None:
        self.consumer_offsets = Offsets()
        self.ends = {1: 0, 2: 0}
        self.holders = []
        self.is_there = False
        self.opens_late = False
        self.opening = []

    def find_queue(self, key: bytes) -> int:
        return {b"RMQ_SYS_TRANS_HALF_TOPIC/0": 1, b"RMQ_SYS_TRANS_OP_HALF_TOPIC/0": 2}[key] if self.is_there else -1

    def max_offset(self, queue_ref: int) -> int:
        return self.ends[queue_ref]

    def open_queue(self, queue_ref: int, then) -> None:
        if self.opens_late:
            self.opening.append(then)
        else:
            then(None)

    def hold(self, positions) -> None:
        self.holders.append(positions)


def test_queues_that_are_not_there_hold_nothing():
    broker = Queues()
    progress = Progress(broker)
    assert (progress.half_end, progress.done_end, list(broker.holders[0]())) == (0, 0, [])
    broker.is_there = True
    assert list(broker.holders[0]()) == [(1, 0), (2, 0)]


def test_records_that_tell_only_of_what_is_over_are_let_go_of():
    broker = Queues()
    broker.is_there = True
    progress = Progress(broker)
    for _ in range(10):
        broker.ends[1] += 1_000
        broker.ends[2] += MARK_EVERY
        progress.mark()
    progress.keep(2_500)
    assert (progress.half_from, progress.done_from) == (2_500, 2 * MARK_EVERY)
    assert broker.consumer_offsets.get(PLACES_GROUP, b"RMQ_SYS_TRANS_OP_HALF_TOPIC/0") == 2 * MARK_EVERY
    progress.keep(2_000)
    assert progress.half_from == 2_500
    progress.keep(10_000)
    assert (progress.half_from, progress.done_from) == (10_000, 10 * MARK_EVERY)


def test_what_is_remembered_of_them_is_bounded_and_never_too_far():
    broker = Queues()
    broker.is_there = True
    progress = Progress(broker)
    broker.ends[1] = 1 << 40
    for number in range(1, 20 * MARKS_MAX):
        broker.ends[2] += MARK_EVERY
        broker.ends[1] += 10
        progress.mark()
        assert len(progress._marks) <= MARKS_MAX, number
    start = (1 << 40) + 5_000
    progress.keep(start)
    assert 0 < progress.done_from <= 500 * MARK_EVERY


def test_nothing_is_let_go_of_before_the_ends_of_the_queues_are_known():
    broker = Queues()
    broker.is_there = broker.opens_late = True
    progress = Progress(broker)
    broker.ends = {1: 1_000, 2: MARK_EVERY}
    assert not progress.find()
    progress.mark()
    progress.keep(500)
    assert (progress.half_from, progress.done_from) == (0, 0)
    for told in broker.opening:
        told(None)
    assert progress.find()
    progress.mark()
    progress.keep(1_000)
    assert (progress.half_from, progress.done_from) == (1_000, MARK_EVERY)


def test_queue_that_could_not_be_opened_is_opened_again():
    broker = Queues()
    broker.is_there = broker.opens_late = True
    progress = Progress(broker)
    while broker.opening:
        broker.opening.pop()(StoreClosedError("not now"))
    broker.opens_late = False
    assert progress.find()
