"""Queues have numbers in the order they came, and it is known of many at once how far each is."""

from __future__ import annotations

import random
from array import array
from itertools import pairwise

import pytest
from pamqp.commands import Queue

from gateway.amqp import queue_rows
from gateway.amqp.queue_rows import NextOffsets, QueueRows
from tests.support import amqp


def take_in(rows):
    for _ in rows.take_in():
        pass


def read_all(world, rows):
    take_in(rows)
    known = NextOffsets(world.broker)
    for _ in known.read():
        pass
    return dict(zip([queue.name for queue in rows.queues], rows.next_offsets(0, len(rows), known), strict=True))


def test_next_offsets_are_those_of_each_queue_also_when_others_came_and_went(world, monkeypatch):
    monkeypatch.setattr(queue_rows, "BLOCK", 2)
    peer = world.client()
    for name in ("a", "b", "c"):
        peer.declare(name)
    peer.publish(b"1", b"2", key="a").publish(b"3", key="c")
    rows = QueueRows(world.broker, world.amqp.vhosts.find("/"))
    assert read_all(world, rows) == {"a": 2, "b": 0, "c": 1}
    peer.call(Queue.Delete(queue="b"))
    peer.declare("d")
    peer.publish(b"4", b"5", b"6", key="d")
    assert read_all(world, rows) == {"a": 2, "b": 0, "c": 1, "d": 3}
    assert [rows.queues[number].is_deleted for number in range(4)] == [False, True, False, False]
    assert rows.ref(3) == world.broker.find_queue(rows.queues[3].light_name)


def test_very_many_queues_that_came_get_their_numbers_in_steps(world, monkeypatch):
    monkeypatch.setattr(queue_rows, "FOUND_A_STEP", 2)
    peer = world.client()
    peer.declare("first")
    rows = QueueRows(world.broker, world.amqp.vhosts.find("/"))
    take_in(rows)
    names = [f"q{number}" for number in range(9)]
    for name in names:
        peer.declare(name)
    sizes = [len(rows)]
    sizes += [len(rows) for _ in rows.take_in()]
    assert [queue.name for queue in rows.queues] == ["first", *names]
    assert max(after - before for before, after in pairwise(sizes)) <= 2


@pytest.mark.parametrize("steps", range(8))
def test_looks_that_begin_while_another_is_under_way_number_each_queue_once(world, monkeypatch, steps):
    monkeypatch.setattr(queue_rows, "FOUND_A_STEP", 2)
    peer = world.client()
    names = [f"q{number}" for number in range(7)]
    for name in names:
        peer.declare(name)
    rows = QueueRows(world.broker, world.amqp.vhosts.find("/"))
    first, second = rows.take_in(), rows.take_in()
    for _ in range(steps):
        next(first, None)
    peer.declare("later")
    peer.call(Queue.Delete(queue="q6"))
    for _ in range(steps // 2):
        next(second, None)
    for look in (first, second, rows.take_in()):
        for _ in look:
            pass
    assert sorted(queue.name for queue in rows.queues if not queue.is_deleted) == sorted({*names, "later"} - {"q6"})
    assert len(rows) == len(rows.queues)


def test_a_look_that_passes_deleted_queues_takes_none_that_another_took_meanwhile(world, monkeypatch):
    monkeypatch.setattr(queue_rows, "FOUND_A_STEP", 2)
    peer = world.client()
    for name in "abcdef":
        peer.declare(name)
    rows = QueueRows(world.broker, world.amqp.vhosts.find("/"))
    take_in(rows)
    for name in "cdef":
        peer.call(Queue.Delete(queue=name))
    for name in "ghi":
        peer.declare(name)
    first = rows.take_in()
    next(first)  # it has passed some of the deleted ones
    take_in(rows)
    for _ in first:
        pass
    assert [queue.name for queue in rows.queues] == list("abcdefghi")


def test_a_queue_whose_light_queue_comes_later_is_found_then(world):
    peer = world.client()
    peer.declare("q")
    rows = QueueRows(world.broker, world.amqp.vhosts.find("/"))
    (queue,) = rows._all
    name, queue.light_name = queue.light_name, b"%LMQ%amqp%later"
    assert read_all(world, rows) == {"q": 0}
    assert rows.ref(0) == -1
    queue.light_name = name
    peer.publish(b"x", key="q")
    assert read_all(world, rows) == {"q": 1}


class Asked:
    """A broker that notes which light queues are looked for."""

    def __init__(self, broker):
        self._broker = broker
        self.names = []

    def __getattr__(self, name):
        return getattr(self._broker, name)

    def find_queue(self, name):
        self.names.append(name)
        return self._broker.find_queue(name)


def test_light_queues_are_looked_for_when_they_are_asked_for_and_few_by_name(world):
    peer, asked = world.client(), Asked(world.broker)
    for number in range(70):
        peer.declare(f"q{number}")
    rows = QueueRows(asked, vhost := world.amqp.vhosts.find("/"))
    take_in(rows)
    assert (len(rows), asked.names) == (70, [])
    assert rows.refs(0, 70).tolist() == [world.broker.find_queue(queue.light_name) for queue in vhost]
    assert 0 < len(asked.names) < 70
    asked.names.clear()
    assert len(rows.refs(0, 70)) == 70
    assert asked.names == []


@pytest.mark.parametrize("missing", [0, 1, 4])
def test_light_queues_that_come_later_are_found_beside_new_ones(world, monkeypatch, missing):
    monkeypatch.setattr(queue_rows, "FOUND_A_STEP", 3)
    peer = world.client()
    for name in "abcde":
        peer.declare(name)
    rows = QueueRows(world.broker, vhost := world.amqp.vhosts.find("/"))
    queue = list(vhost)[missing]
    name, queue.light_name = queue.light_name, b"%LMQ%amqp%later"
    take_in(rows)
    assert [ref < 0 for ref in rows.refs(0, 5)] == [number == missing for number in range(5)]
    queue.light_name = name
    for later in "fgh":
        peer.declare(later)
    take_in(rows)
    assert rows.refs(0, 8).tolist() == [world.broker.find_queue(queue.light_name) for queue in vhost]


@pytest.mark.parametrize("steps", range(6))
def test_newer_queues_are_taken_while_the_last_one_known_goes(world, monkeypatch, steps):
    monkeypatch.setattr(queue_rows, "FOUND_A_STEP", 2)
    peer = world.client()
    for name in "abc":
        peer.declare(name)
    rows = QueueRows(world.broker, vhost := world.amqp.vhosts.find("/"))
    take_in(rows)
    for name in "defghij":
        peer.declare(name)
    look = rows.take_in()
    for _ in range(steps):
        next(look, None)
    peer.call(Queue.Delete(queue="c"))
    for _ in look:
        pass
    assert [queue.name for queue in rows.queues] == list("abcdefghij")
    assert rows.refs(0, 10).tolist() == [world.broker.find_queue(vhost.light_name(name)) for name in "abcdefghij"]


def test_rows_are_worn_when_most_queues_are_deleted(world, monkeypatch):
    monkeypatch.setattr(queue_rows, "BLOCK", 1)
    peer = world.client()
    rows = QueueRows(world.broker, world.amqp.vhosts.find("/"))
    for name in "abcd":
        peer.declare(name)
    take_in(rows)
    assert not rows.is_worn
    for name in "abc":
        peer.call(Queue.Delete(queue=name))
    assert rows.is_worn


def test_light_queues_are_read_in_blocks(world, monkeypatch):
    monkeypatch.setattr(queue_rows, "BLOCK", 1)
    peer = world.client()
    for name in "ab":
        peer.declare(name)
    known = NextOffsets(world.broker)
    assert len(list(known.read())) == world.broker.queue_count()
    assert known.numbers == array("q", bytes(8 * (world.broker.queue_count() + 1)))


@pytest.mark.parametrize("names", ["abcd", "dcba"])
def test_offsets_of_now_are_those_of_each_queue(world, names):
    peer = world.client()
    for name in names:
        peer.declare(name)
    for name in "dcba":  # declared again, they have the light queues that they had
        peer.call(Queue.Delete(queue=name))
    for name in "abcd":
        peer.declare(name)
    for number, name in enumerate("abcd"):
        peer.publish(*[b"x"] * number, key=name)
    rows = QueueRows(world.broker, world.amqp.vhosts.find("/"))
    take_in(rows)
    before = [rows.queues[number].first_offset for number in range(4)]
    assert [end - first for end, first in zip(rows.next_offsets_now(0, 4), before, strict=True)] == [0, 1, 2, 3]
    assert rows.next_offsets_now(2, 4).tolist() == rows.next_offsets_now(0, 4).tolist()[2:]
    assert rows.refs(0, 4).tolist() == [rows.ref(number) for number in range(4)]


def test_two_that_take_queues_in_at_once_give_each_one_number(world, monkeypatch):
    monkeypatch.setattr(queue_rows, "FOUND_A_STEP", 1)
    peer = world.client()
    for name in "abc":
        peer.declare(name)
    rows = QueueRows(world.broker, world.amqp.vhosts.find("/"))
    first = rows.take_in()
    next(first)
    peer.declare("d")
    take_in(rows)
    for _ in first:
        pass
    assert [queue.name for queue in rows.queues] == list("abcd")
    assert (len(rows), len(set(rows.refs(0, 4)))) == (4, 4)


@pytest.mark.here(reason="the numbers of light queues between those of queues are to be known")
@pytest.mark.parametrize("seed", range(3))
def test_spans_with_other_light_queues_between_them_are_as_single_queues(world, seed):
    draw, peer = random.Random(seed), world.client()
    rows = QueueRows(world.broker, world.amqp.vhosts.find("/"))
    for number in range(30):
        if draw.random() < 0.3:
            world.broker.intern_queue(b"%%LMQ%%mqtt%%%d" % number)
        peer.declare(f"q{draw.randrange(20)}")
        peer.publish(*[b"x"] * draw.randrange(3), key=f"q{draw.randrange(20)}")
        read_all(world, rows)
    known = NextOffsets(world.broker)
    for _ in known.read():
        pass
    each = [world.broker.max_offset(world.broker.find_queue(queue.light_name)) for queue in rows.queues]
    for first in range(len(rows)):
        for end in range(first + 1, len(rows) + 1):
            assert rows.next_offsets(first, end, known).tolist() == each[first:end]
            assert rows.next_offsets_now(first, end).tolist() == each[first:end]


def test_names_are_those_of_queues_wherever_they_are_read_from(world, monkeypatch):
    monkeypatch.setattr(queue_rows, "FOUND_A_STEP", 4)
    peer, names = world.client(), [f"q{number}" for number in range(10)] + ["a\nb", "c"]
    vhost = world.amqp.vhosts.find("/")
    for name in names:
        vhost.add(name, durable=True, auto_delete=False, owner=None, arguments={})
    rows = QueueRows(world.broker, vhost)
    take_in(rows)
    told = [name.replace("\n", " ") for name in names]
    for is_read in (False, True):
        for first in range(12):
            for end in range(first + 1, 13):
                assert rows.names(first, end).split("\n") == told[first:end]
        assert rows.names(8, 12) is rows.names(8, 12)  # whole blocks are kept
        for _ in rows.read_names() if not is_read else ():
            pass
    peer.declare("d")
    take_in(rows)
    assert [rows.names(10, 13), rows.names(12, 13)] == ["a b\nc\nd", "d"]


def test_deleted_queues_are_told_by_number_also_those_that_went_before_they_had_one(world, monkeypatch):
    monkeypatch.setattr(queue_rows, "FOUND_A_STEP", 2)
    peer, vhost = world.client(), world.amqp.vhosts.find("/")
    for name in "abcdef":
        peer.declare(name)
    rows = vhost.rows
    look = rows.take_in()
    next(look)  # some have numbers
    for name in "afc":
        peer.call(Queue.Delete(queue=name))
    for _ in look:
        pass
    dead = [number for number, queue in enumerate(rows.queues) if queue.is_deleted]
    assert (rows.queues[rows.gone[0]].name, sorted(rows.gone)) == ("a", dead)
    peer.declare("a")
    take_in(rows)
    peer.call(Queue.Delete(queue="a"))
    assert rows.queues[rows.gone[-1]].name == "a"
    assert sorted(rows.gone) == [number for number, queue in enumerate(rows.queues) if queue.is_deleted]
    assert len(set(rows.gone)) == len(rows.gone)


def test_rows_that_are_replaced_give_no_numbers_to_queues_any_more(world):
    peer, vhost = world.client(), world.amqp.vhosts.find("/")
    for name in "abc":
        peer.declare(name)
    take_in(old := vhost.rows)
    peer.call(Queue.Delete(queue="a"))
    old.is_retired, vhost.rows = True, QueueRows(world.broker, vhost)
    take_in(vhost.rows)
    peer.declare("d")
    take_in(old)
    take_in(vhost.rows)
    peer.call(Queue.Delete(queue="c"))
    assert [vhost.rows.queues[number].name for number in vhost.rows.gone] == ["c"]
    assert [queue.name for queue in old.queues] == list("abcd")


def test_queues_that_are_opened_or_read_are_found_until_nobody_uses_them(world):
    peer = world.client()
    for name in ("a", "b", "c", "d"):
        peer.declare(name, arguments={"x-max-length": 9} if name == "c" else None)
    peer.declare("s", durable=True, arguments={"x-queue-type": "stream"})
    vhost = world.amqp.vhost
    rows = vhost.rows
    take_in(rows)

    def in_use():
        return [rows.queues[number].name for number in rows.find_in_use(0, len(rows))]

    assert in_use() == ["c", "s"]  # one looks after its length, and nobody opens a stream to read it
    reader = world.client()
    reader.consume("a", no_ack=False)
    peer.publish(b"x", key="b").call(Queue.Purge(queue="b"))
    assert set(in_use()) == {"a", "b", "c", "s"}
    reader.vanish()
    assert "a" not in in_use()
    peer.call(Queue.Delete(queue="b"))
    assert in_use() == ["c", "s"]
    assert rows.find_in_use(3, 4) == []


def test_a_queue_that_has_a_number_before_it_is_open_is_found_once_it_is(world):
    peer, vhost = world.client(), world.amqp.vhost
    peer.begin(amqp.method(1, Queue.Declare(queue="p", arguments={"x-max-priority": 2})))
    take_in(vhost.rows)
    world.turn()
    assert [vhost.rows.queues[number].name for number in vhost.rows.find_in_use(0, 1)] == ["p"]


def test_what_is_opened_is_noted_by_the_rows_that_took_the_place_of_others(world):
    peer, vhost = world.client(), world.amqp.vhost
    peer.declare("a")
    take_in(old := vhost.rows)
    old.is_retired, vhost.rows = True, QueueRows(world.broker, vhost)
    take_in(vhost.rows)
    world.client().consume("a", no_ack=False)
    assert vhost.rows.find_in_use(0, 1) == [0]
    assert old.find_in_use(0, 1) == []


def test_a_queue_that_is_opened_before_it_has_a_number_is_found_once_it_has_one(world):
    peer, vhost = world.client(), world.amqp.vhost
    for name in "ab":
        peer.declare(name)
    world.client().consume("b", no_ack=False)
    take_in(vhost.rows)
    assert vhost.rows.find_in_use(0, 2) == [1]
