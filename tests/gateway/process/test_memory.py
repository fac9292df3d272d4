from __future__ import annotations

import pytest

from core.room import Room
from gateway.net.watermarks import Watermarks
from gateway.process.memory import MemoryWatch, find_memory_bytes, own_bytes
from tests.support.amqp_door import AmqpWorld
from tests.support.rocketmq_door import DoorSite

MOST = 1_600


class Site:
    """A watch over a memory that is as the test says."""

    def __init__(self, bytes_max=MOST):
        self.used_bytes = 0
        self.room = Room(0)
        self.marks = Watermarks()
        self.watch = MemoryWatch(self.room, self.marks, bytes_max, lambda: self.used_bytes)

    def look(self, used_bytes):
        self.used_bytes = used_bytes
        self.watch.look(7)
        assert self.marks.is_memory_low == self.room.is_memory_low
        return self.room.is_low


def test_what_is_used_is_known_before_the_first_look():
    assert MemoryWatch(Room(0), Watermarks(), MOST, lambda: 70).used_bytes == 70


def test_memory_is_low_above_the_most_and_well_again_a_sixteenth_below_it(caplog):
    site = Site()
    assert [site.look(used) for used in (MOST, MOST + 1, MOST, MOST - 99, MOST - 100)] == [
        False,
        True,
        True,
        True,
        False,
    ]
    assert "memory is low" in caplog.text
    assert site.watch.used_bytes == MOST - 100


def test_without_a_maximum_memory_is_never_low_and_another_one_counts_at_the_next_look():
    site = Site(0)
    assert not site.look(1 << 50)
    site.watch.use(10)
    assert site.look(11)
    site.watch.use(0)
    assert not site.look(11)


def test_memory_of_the_machine_or_of_the_container_is_found(tmp_path):
    whole = find_memory_bytes(())
    limit, none = tmp_path / "memory.max", tmp_path / "none"
    limit.write_text("67108864\n")
    none.write_text("max\n")
    assert find_memory_bytes((none, tmp_path / "missing", limit)) == 67_108_864
    assert find_memory_bytes((none,)) == whole > 1 << 26
    assert 0 < Site(None).watch.bytes_max < whole
    assert 1 << 20 < own_bytes() < whole


@pytest.fixture
def world(tmp_path, engine_maker):
    world = AmqpWorld(tmp_path, make_engine=engine_maker)
    yield world
    world.close()


def test_amqp_publisher_is_blocked_and_told_why(world):
    peer = world.client(properties={"capabilities": {"connection.blocked": True}})
    peer.declare("q")
    peer.publish(b"x")
    peer.take()
    world.broker.room.note_memory(is_low=True, now_ms=world.now_ms)
    (blocked,) = peer.take()
    assert blocked.reason == "low on memory"
    assert peer.transport.is_held
    world.broker.room.note_memory(is_low=False, now_ms=world.now_ms)
    assert not peer.transport.is_held


def test_rocketmq_producer_is_told_that_the_broker_is_busy(tmp_path, engine_maker):
    site = DoorSite(tmp_path / "d", make_engine=engine_maker)
    peer = site.connect()
    site.broker.room.note_memory(is_low=True, now_ms=site.now_ms)
    answer = peer.send(b"x")
    assert answer.code == 2
    assert answer.remark.endswith("low on memory")
    site.broker.room.note_memory(is_low=False, now_ms=site.now_ms)
    assert peer.send(b"x").code == 0
    site.close()
