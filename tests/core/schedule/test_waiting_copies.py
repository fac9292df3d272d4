from __future__ import annotations

from contextlib import closing

import pytest

from core.errors import DiskFullError, MessageTooLargeError
from core.message import FLAG_MARK, FLAG_RETAIN, DispatchSet, PublishBatch, RefRoom, Route
from core.schedule.waiting_copies import COUNT_MAX, WaitingCopies
from core.store.embedded import EmbeddedEngine
from tests.support.store import NOW_MS, light, make_batch, open_store, read_queue


class Appends:
    """An engine that notes what is appended, has room for so many copies, and tells outcomes when asked."""

    def __init__(self):
        self.appended = []
        self.flags = []
        self.copies_max = 1_000_000
        self.tickets = 0
        self.told = {}

    def append_batch(self, batch, now_ms):
        self.tickets += 1
        batch.ticket = self.tickets
        count = batch.count
        if batch.routes[0].topic.startswith(b"w"):
            count = min(count, self.copies_max)
            self.copies_max -= count
        bodies = [bytes(batch.buf[batch.body_start[i] : batch.body_end[i]]) for i in range(count)]
        self.appended.append([(batch.routes[batch.route_index[i]].topic, bodies[i]) for i in range(count)])
        self.flags.append([batch.flag[i] for i in range(count)])
        batch.appended = count
        if count < batch.count:
            raise DiskFullError("/data")

    def when_stored(self, ticket, then):
        self.told.setdefault(ticket, []).append(then)

    def tell(self, ticket, error=None):
        for then in self.told.pop(ticket, []):
            then(error)


def route(topic):
    return Route(topic, 0, 0, b"", DispatchSet([], [], b"", RefRoom()))


def batch_of(*bodies, waits=()):
    batch = PublishBatch(len(bodies))
    batch.buf = b"".join(bodies)
    batch.routes = [route(b"now")]
    pos = 0
    for i, body in enumerate(bodies):
        batch.body_start[i], pos = pos, pos + len(body)
        batch.body_end[i] = pos
        batch.flag[i] = FLAG_MARK | FLAG_RETAIN | 1
    batch.count = len(bodies)
    batch.waits = list(waits)
    return batch


@pytest.fixture
def engine():
    return Appends()


@pytest.fixture
def copies(engine):
    return WaitingCopies(engine)


def test_copies_are_stored_before_their_messages_and_are_not_retained(engine, copies):
    first, second = route(b"w1"), route(b"w2")
    batch = batch_of(b"a", b"b", b"c", waits=[(2, first), (0, first), (0, second), (7, first)])
    copies.append(batch, 1)
    assert engine.appended == [
        [(b"w1", b"a"), (b"w2", b"a"), (b"w1", b"c")],
        [(b"now", b"a"), (b"now", b"b"), (b"now", b"c")],
    ]
    assert set(engine.flags[0]) == {FLAG_MARK | 1}
    assert (batch.count, batch.appended) == (3, 3)


def test_copies_do_not_say_what_a_front_noted_of_their_messages(engine, copies):
    said = []
    engine.append_batch = lambda batch, now_ms: said.append(batch.sys_flag[0])
    batch = batch_of(b"a", waits=[(0, route(b"w"))])
    batch.sys_flag[0] = 7 << 16 | 1
    copies.append(batch, 1)
    assert said == [1, 7 << 16 | 1]


def test_more_copies_than_one_append_takes_are_stored_all(engine, copies):
    copies.append(batch_of(b"a", waits=[(0, route(b"w"))] * (COUNT_MAX + 1)), 1)
    assert [len(one) for one in engine.appended] == [COUNT_MAX, 1, 1]


@pytest.mark.parametrize(("copies_taken", "taken"), [(0, 1), (1, 2)])
def test_message_whose_copy_finds_no_room_is_not_taken_and_those_before_it_are(engine, copies, copies_taken, taken):
    engine.copies_max = copies_taken
    batch = batch_of(b"a", b"b", b"c", waits=[(1, route(b"w")), (2, route(b"w"))])
    with pytest.raises(DiskFullError):
        copies.append(batch, 1)
    assert [body for _, body in engine.appended[-1]] == [b"a", b"b", b"c"][:taken]
    assert (batch.count, batch.appended) == (3, taken)


def test_nothing_of_a_batch_is_taken_where_the_first_copy_finds_no_room(engine, copies):
    engine.copies_max = 0
    batch = batch_of(b"a", b"b", waits=[(0, route(b"w"))])
    with pytest.raises(DiskFullError):
        copies.append(batch, 1)
    assert (engine.appended, batch.count, batch.appended) == ([[]], 2, 0)


@pytest.mark.parametrize("lost", [0, 1])
def test_a_batch_is_safe_when_its_copies_are_and_lost_with_any_of_them(engine, copies, lost):
    batch = batch_of(b"a", waits=[(0, route(b"w"))])
    copies.append(batch, 1)
    outcomes = []
    for _ in range(2):  # the front that answers, and a part of it that notes the outcome
        engine.when_stored(batch.ticket, copies.tie(batch.ticket, outcomes.append))
    error = DiskFullError("/data") if lost else None
    engine.tell(batch.ticket - 1, error)
    assert outcomes == []
    engine.tell(batch.ticket)
    assert outcomes == [error, error]


def test_a_batch_whose_copies_are_all_of_messages_that_were_cut_off_is_appended_as_it_is(engine, copies):
    batch = batch_of(b"a", waits=[(1, route(b"w"))])
    copies.append(batch, 1)
    assert engine.appended == [[(b"now", b"a")]]
    batch.count = 0
    copies.append(batch, 1)
    assert engine.appended[1:] == [[]]


def test_a_whole_batch_and_its_copies_are_one_append_with_the_messages_first(engine, copies):
    batch = batch_of(b"a", b"b", waits=[(1, route(b"w1")), (0, route(b"w2")), (5, route(b"w3"))])
    batch.sys_flag[1] = 7 << 16 | 1
    batch.is_whole = True
    copies.append(batch, 1)
    assert engine.appended == [[(b"now", b"a"), (b"now", b"b"), (b"w2", b"a"), (b"w1", b"b")]]
    assert engine.flags == [[FLAG_MARK | FLAG_RETAIN | 1] * 2 + [FLAG_MARK | 1] * 2]
    assert (batch.count, batch.appended, batch.ticket) == (2, 2, 1)
    outcomes = []
    engine.when_stored(batch.ticket, copies.tie(batch.ticket, outcomes.append))
    engine.tell(batch.ticket)
    assert outcomes == [None]


def append_whole(store, *bodies):
    """Append a batch of which the first message waits somewhere, too."""
    now, later = (store.make_route(topic, 0, b"", light("q")) for topic in (b"now", b"later"))
    batch = make_batch([(now, body) for body in bodies])
    batch.waits = [(0, later)]
    batch.is_whole = True
    try:
        WaitingCopies(EmbeddedEngine(store, is_sync=False)).append(batch, NOW_MS)
    except MessageTooLargeError:
        assert batch.appended == 0
    return batch


def test_nothing_is_left_of_a_whole_batch_that_finds_no_room_nor_of_its_copies(tmp_path):
    with closing(open_store(tmp_path)) as store:
        append_whole(store, b"a", b"x" * store.settings.segment_bytes)
        assert store.message_count == 0
        batch = append_whole(store, b"a", b"b")
        assert (batch.appended, store.message_count) == (2, 3)
        assert 0 <= batch.physical_offset[0] < batch.physical_offset[1]
        assert list(batch.queue_offset[:2]) == [0, 1]
        assert [body for _, body in read_queue(store, b"later/0")] == [b"a"]
