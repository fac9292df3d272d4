"""A dead letter finishes its message by being stored: over kills and power cuts a message or its letter is there."""

from __future__ import annotations

import random

import pytest
from pamqp.commands import Basic

from core.pop.pop_service import PopService
from core.properties import LETTER_OF, encode_properties
from gateway.amqp.door import EXPIRY_INTERVAL_MS
from gateway.amqp.open_letters import READ_BYTES, OpenLetters, encode_message, identify_message
from tests.support.amqp_door import AmqpWorld
from tests.support.simulated_disk import SimulatedDisk, cut_power
from tests.support.stores import FullJournal

TO_DEAD = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
LEFT = {
    "nothing": ("nothing",),
    "the log": ("commitlog/",),
    "what keeps places": ("journals/", "places/"),
    "journals": ("journals/",),
    "places": ("places/", "confirmed"),
    "the log, and places": ("commitlog/", "places/"),
    "how far the log was flushed": ("confirmed",),
    "the log, and how far it was flushed": ("commitlog/", "confirmed"),
    "all": ("",),
}


class Publisher:
    """Publishes numbered messages to `work`, takes some, rejects some of these."""

    def __init__(self):
        self.sent = self.base = 0
        self.confirmed = set()
        self.held = []

    def connect(self, world):
        self.world = world
        self.peer = world.client()
        for queue, arguments in (("dead", {}), ("work", {**TO_DEAD, "x-max-priority": 3})):
            self.peer.declare(queue, durable=True, arguments=arguments)
        self.peer.confirms()
        self.held = []
        self.base = self.sent

    def publish(self, count):
        for _ in range(count):
            self.sent += 1
            self.peer.publish(b"%d" % self.sent, key="work", priority=self.sent % 4, delivery_mode=2)
        self.take()

    def get(self, count):
        for _ in range(count):
            self.peer.send(Basic.Get(queue="work"))
        self.take()

    def reject(self, count):
        for _ in range(min(count, len(self.held))):
            self.peer.send(Basic.Nack(self.held.pop(0), requeue=False))
        self.take()

    def take(self):
        for one in self.peer.take():
            if isinstance(one, Basic.Ack):
                self.confirmed |= set(range(self.base + 1, self.base + one.delivery_tag + 1))
            elif hasattr(one, "tag"):
                self.held.append(one.tag)


def read_all(peer, queue):
    bodies = []
    while not isinstance(answer := peer.call(Basic.Get(queue=queue)), Basic.GetEmpty):
        bodies.append(int(answer.body))
    return bodies


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_over_power_cuts_each_message_is_in_its_queue_or_has_one_letter(tmp_path, seed):
    rng = random.Random(seed)
    publisher = Publisher()
    root = tmp_path / "0"
    root.mkdir()
    for life in range(5):
        disk = SimulatedDisk(root)
        with disk.watching():
            world = AmqpWorld(root / "data", is_sync=True)
            publisher.connect(world)
            for _ in range(rng.randrange(1, 14)):
                world.flushes_by_itself = rng.random() < 0.7
                world.turn()
                rng.choice((publisher.publish, publisher.get, publisher.reject))(rng.randrange(1, 6))
                if rng.random() < 0.5:
                    world.now_ms += EXPIRY_INTERVAL_MS
                    world.amqp.vhosts.expire_first(world.now_ms)
            world.flushes_by_itself = False
            publisher.reject(rng.randrange(4))
            root = tmp_path / str(life + 1)
            cut_power(world, disk, root, LEFT[rng.choice(list(LEFT))])
    world = AmqpWorld(root / "data", is_sync=True)
    publisher.connect(world)
    found = sorted(read_all(world.client(), "dead") + read_all(world.client(), "work"))
    assert [body for body in found if body in publisher.confirmed] == sorted(publisher.confirmed)
    world.close()


@pytest.mark.parametrize("is_flushed", [False, True])
@pytest.mark.parametrize("arguments", [{}, {"x-max-priority": 3}, {"x-max-length-bytes": 1_000}], ids=str)
def test_letter_in_the_log_finishes_its_message_though_all_else_is_lost(tmp_path, arguments, is_flushed):
    (tmp_path / "before").mkdir()
    disk = SimulatedDisk(tmp_path / "before")
    with disk.watching():
        world = AmqpWorld(disk.root / "data", is_sync=True)
        peer = world.client()
        peer.declare("dead", durable=True)
        peer.declare("work", durable=True, arguments={**TO_DEAD, **arguments})
        peer.confirms().publish(b"1", b"2", b"3", key="work", priority=2, delivery_mode=2).take()
        world.flushes_by_itself = False  # neither what is taken nor what is done is on the disk
        last = [peer.call(Basic.Get(queue="work")) for _ in range(3)][1]
        peer.send(Basic.Nack(last.tag, requeue=False))
        if is_flushed:  # the log alone; that it is so may come to the disk earlier than what was written before it
            world.flush()
        cut_power(world, disk, tmp_path / "after", LEFT["the log, and how far it was flushed"])
    world = AmqpWorld(tmp_path / "after" / "data", is_sync=True)
    assert world.client().declare("work", passive=True).message_count == 2
    assert (read_all(world.client(), "work"), read_all(world.client(), "dead")) == ([1, 3], [2])
    world.close()


def test_start_reads_no_more_than_the_letters_that_are_not_known_to_be_done(tmp_path, engine_maker):
    world = AmqpWorld(tmp_path, is_sync=True, make_engine=engine_maker)
    letters = OpenLetters(world.broker)
    peer = world.client()
    peer.declare("q", durable=True)
    peer.publish(b"x", key="q")
    first = letters.begin()
    peer.publish(b"x", key="q")
    second, place = letters.begin(), world.broker.end_place
    settle(world, letters)
    assert 0 < since(world) < place  # where the first begins
    letters.end(first)
    settle(world, letters)
    assert since(world) == place
    peer.publish(b"x", key="q")
    letters.settle()
    letters.end(second)  # that it is done may not be on the disk yet
    world.turn()
    assert since(world) == place
    settle(world, letters)
    assert since(world) == world.broker.end_place > place
    world.close()


def test_log_without_letters_is_read_in_part_at_the_start(tmp_path):
    world = AmqpWorld(tmp_path, is_sync=True)
    letters = OpenLetters(world.broker)
    peer = world.client()
    peer.declare("q", durable=True)
    peer.publish(b"x", key="q")
    settle(world, letters)
    assert since(world) == 0  # a sync for less than that is not worth it
    for _ in range(READ_BYTES // 65_536):
        peer.publish(bytes(65_536), key="q")
    settle(world, letters)
    assert since(world) == world.broker.end_place
    world.close()


def test_letters_are_not_called_done_while_a_full_disk_holds_up_what_says_so(tmp_path):
    world = AmqpWorld(tmp_path, is_sync=True)
    letters = OpenLetters(world.broker)
    world.client().declare("q", durable=True)
    world.client().publish(b"x", key="q")
    journal = FullJournal()
    world.broker.pop = pop = PopService(world.engine, journal)
    journal.is_full = True
    pop.open(b"%LMQ%q", b"g")
    letters.end(letters.begin())
    settle(world, letters)
    assert since(world) == 0
    journal.is_full = False
    pop.write()
    settle(world, letters)
    assert since(world) == world.broker.end_place > 0
    world.close()


def test_place_behind_the_end_of_the_log_is_the_end(tmp_path):
    world = AmqpWorld(tmp_path, is_sync=True)
    world.broker.places("amqp_letters").fill(0, 1 << 40)
    world.close()
    world.open()
    assert since(world) == world.broker.end_place
    world.close()


def settle(world, letters):
    letters.settle()
    world.turn()


def since(world):
    return world.broker.places("amqp_letters").get(0)


@pytest.mark.parametrize("said", [b"", b"12", b"12.3", b"12.3.x", b"1.2.3.4"])
def test_what_names_no_message_finishes_none(said):
    assert identify_message(encode_properties([(LETTER_OF, said)])) is None


def test_message_is_named_by_its_letter():
    assert identify_message(encode_properties([(LETTER_OF, encode_message(7, (8, 9)))])) == (8, 9, 7)
