from __future__ import annotations

from core.errors import StoreClosedError
from gateway.rocketmq.opened import open_queues, opened


class Queues:
    """Queues that open when they are told to."""

    def __init__(self, *keys):
        self.keys = keys
        self.opening = []

    def find_queue(self, key):
        return self.keys.index(key) if key in self.keys else -1

    def open_queue(self, queue_ref, then):
        self.opening.append(then)


def test_it_is_told_when_the_last_queue_is_open_and_with_what_went_wrong():
    for errors in ((None, None), (StoreClosedError("away"), None)):
        queues, told = Queues(b"a", b"b"), []
        open_queues(queues, [b"a", b"none", b"b"], told.append)
        for then, error in zip(queues.opening, errors, strict=True):
            assert told == []
            then(error)
        assert told == [errors[0]]


def test_queues_that_are_not_there_are_waited_for_by_nobody():
    told = []
    open_queues(Queues(), [b"none"], told.append)
    assert told == [None]


def test_an_answer_in_steps_goes_on_when_a_queue_is_open():
    queues = Queues(b"a")
    steps = opened(queues, 0)
    assert [next(steps), next(steps)] == [None, None]
    queues.opening[0](None)
    assert next(steps, "over") == "over"
