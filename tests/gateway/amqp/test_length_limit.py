from __future__ import annotations

from core.message import StoredBatch
from core.queues.terms import QueueTerms
from gateway.amqp.length_limit import find_excess, find_room


class Pop:
    """A pop queue whose ready messages have these sizes."""

    def __init__(self, *sizes):
        self.sizes = sizes
        self.ready_count = len(sizes)
        self.ready_bytes = sum(sizes)

    def count_on(self):
        return True

    def peek(self, into, count_max):
        into.clear()
        for i, size in enumerate(self.sizes[:count_max]):
            into.body_start[i], into.body_end[i] = 0, size
            into.count = i + 1
        return into.count


class Consumer:
    def __init__(self, room):
        self.left = room

    def room(self):
        return self.left


def admitted(room, *sizes):
    return [room.admit(size) for size in sizes]


def test_messages_and_bytes_have_room_each_by_itself():
    terms = QueueTerms(length_max=3, bytes_max=10)
    assert admitted(find_room(terms, Pop(4), [], 9), 7, 6, 0, 0) == [False, True, True, False]


def test_consumers_take_what_comes_whatever_its_size_after_what_is_there():
    terms = QueueTerms(bytes_max=10)
    assert admitted(find_room(terms, Pop(), [Consumer(1)], 9), 99, 99, 10) == [True, False, True]
    assert admitted(find_room(terms, Pop(4), [Consumer(1)], 9), 99, 6) == [False, True]
    single = QueueTerms(bytes_max=10, is_single_active=True)
    assert admitted(find_room(single, Pop(), [Consumer(0), Consumer(5)], 9), 99) == [False]


def test_the_first_messages_are_too_much_until_the_rest_has_room():
    stored = StoredBatch(8)
    assert find_excess(QueueTerms(bytes_max=10), Pop(4, 4, 4), stored, 8) == 1
    assert find_excess(QueueTerms(bytes_max=10, length_max=1), Pop(4, 4, 4), stored, 8) == 2
    assert find_excess(QueueTerms(bytes_max=0), Pop(4, 4, 0), stored, 8) == 2
    assert find_excess(QueueTerms(bytes_max=12), Pop(4, 4, 4), stored, 8) == 0
    assert find_excess(QueueTerms(bytes_max=1), Pop(4, 4, 4), stored, 2) == 2
