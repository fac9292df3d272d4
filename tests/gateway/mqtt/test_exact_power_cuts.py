"""Log and journal of QoS 2 after a power cut that left one of them, both, or none."""

from __future__ import annotations

import random

import pytest

from gateway.mqtt import exact
from tests.support.exactly_once import LEFT, ExactPublisher, ended_by_power_cut, let_copies_wait, restart
from tests.support.mqtt import parse_publish, pubcomp, publish, pubrec, pubrel, subscribe, unsuback, unsubscribe
from tests.support.mqtt_door import World
from tests.support.simulated_disk import SimulatedDisk, cut_power


@pytest.mark.parametrize("left", LEFT)
def test_message_that_is_sent_again_after_a_power_cut_is_stored_once(tmp_path, left):
    with ended_by_power_cut(tmp_path, LEFT[left]) as world:
        world.client(b"keeper", (b"t", 1), clean=False).vanish()
        publisher = ExactPublisher(world)
        publisher.publish(3)
        publisher.release()
        world.flush()
        world.flushes_by_itself = False
        publisher.publish(3)  # in two batches, under the identifiers of the three before
        publisher.publish(2)
        assert len(publisher.open) == 5
    world = World(tmp_path / "after" / "data")
    publisher.connect(world)
    assert publisher.open == {}
    publisher.release()
    publisher.publish(4)
    assert world.connect(b"keeper", clean=False).bodies() == [b"%d" % i for i in range(1, 13)]
    world.close()


def test_message_is_stored_that_a_power_cut_took_out_of_the_middle_of_the_log(tmp_path):
    with ended_by_power_cut(tmp_path, ("commitlog/", "journals/mqtt_exact")) as world:
        world.client(b"keeper", (b"t", 1), clean=False).vanish()
        publisher = ExactPublisher(world)
        publisher.publish(1)
        publisher.release()
        world.flush()
        world.flushes_by_itself = False
        start = world.broker.end_place
        publisher.publish(1)  # under the identifier of the one before
        end = world.broker.end_place
        publisher.publish(2)
    (path,) = (tmp_path / "after" / "data" / "commitlog").iterdir()
    data = bytearray(path.read_bytes())
    data[start:end] = bytes(end - start)
    path.write_bytes(data)
    world = World(tmp_path / "after" / "data")
    publisher.connect(world)
    assert publisher.open == {}
    assert world.connect(b"keeper", clean=False).bodies() == [b"1", b"3", b"4", b"2"]
    world.close()


def test_message_is_stored_when_a_power_cut_leaves_a_compaction_and_not_the_log(tmp_path, monkeypatch):
    monkeypatch.setattr(exact, "COMPACT_BYTES_MIN", 1)  # each batch is a step of one
    with ended_by_power_cut(tmp_path, LEFT["the journal"]) as world:
        world.client(b"keeper", (b"t", 1), clean=False).vanish()
        publisher = ExactPublisher(world)
        publisher.publish(3)
        publisher.release()
        world.flush()
        world.flushes_by_itself = False
        for _ in range(8):
            publisher.publish(2)
        assert len(publisher.open) == 16
    world = World(tmp_path / "after" / "data")
    publisher.connect(world)
    assert publisher.open == {}
    assert world.connect(b"keeper", clean=False).bodies() == [b"%d" % i for i in range(1, 20)]
    world.close()


def test_a_mark_past_the_end_of_the_log_is_none_when_the_log_is_as_long_again(tmp_path, monkeypatch):
    monkeypatch.setattr(exact, "MARK_BYTES", 1)
    with ended_by_power_cut(tmp_path, LEFT["the journal"]) as world:
        world.client(b"keeper", (b"t", 1), clean=False).vanish()
        publisher = world.client(b"p", clean=False)
        world.flush()
        world.flushes_by_itself = False
        publisher.send(publish(b"t", b"lost"))
        world.door.exact.keep_up()
    world = World(tmp_path / "after" / "data")
    publisher = world.client(b"p", clean=False)
    publisher.send(*[publish(b"t", b"%d" % i, qos=2, packet_id=i) for i in range(1, 6)])
    publisher.send(*[pubrel(i) for i in range(1, 6)])
    assert publisher.take() == [*[pubrec(i) for i in range(1, 6)], *[pubcomp(i) for i in range(1, 6)]]
    restart(world)
    publisher = world.client(b"p", clean=False)
    publisher.send(*[publish(b"t", b"%d" % (5 + i), qos=2, packet_id=i) for i in range(1, 6)])
    assert world.connect(b"keeper", clean=False).bodies() == [b"%d" % i for i in range(1, 11)]
    world.close()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_each_message_is_stored_once_over_power_cuts_and_kills(tmp_path, seed, monkeypatch):
    monkeypatch.setattr(exact, "COMPACT_BYTES_MIN", 1_000)
    rng = random.Random(seed)
    publisher = None
    root = tmp_path / "0"
    root.mkdir()
    for life in range(6):
        disk = SimulatedDisk(root)
        with disk.watching():
            world = World(root / "data")
            world.client(b"keeper", (b"t", 1), clean=False).vanish()
            if seed % 2:
                let_copies_wait(world)
            others = [world.client(b"other", clean=False), world.client(b"clean")]
            if publisher is None:
                publisher = ExactPublisher(world)
            else:
                publisher.connect(world)
            for _ in range(rng.randrange(8)):
                world.flushes_by_itself = rng.random() < 0.6
                world.turn()
                publisher.take()
                rng.choice((publisher.publish, publisher.publish, publisher.release))(rng.randrange(1, 5))
                if rng.random() < 0.5:
                    packet_id = rng.randrange(1, 9)
                    rng.choice(others).send(publish(b"else", b"x", qos=2, packet_id=packet_id), pubrel(packet_id))
            world.flushes_by_itself = False
            publisher.publish(rng.randrange(1, 6))
            root = tmp_path / str(life + 1)
            cut_power(world, disk, root, LEFT[rng.choice(list(LEFT))])
    world = World(root / "data")
    publisher.connect(world)
    assert publisher.open == {}
    found = world.connect(b"keeper", clean=False).bodies()
    assert found == [b"%d" % i for i in range(1, publisher.number + 1)]
    world.close()


@pytest.mark.parametrize("left", LEFT)
def test_subscriber_is_given_once_what_was_synced_before_a_power_cut(tmp_path, left):
    with ended_by_power_cut(tmp_path, LEFT[left]) as world:
        subscriber = world.client(b"s", (b"t", 2), clean=False)
        publisher = world.client(b"p")
        publisher.send(*[publish(b"t", b"%d" % i, qos=2, packet_id=i) for i in range(1, 4)])
        done, received, sent = (one.packet_id for one in subscriber.take_deliveries())
        subscriber.send(pubrec(done), pubrec(received), pubcomp(done))
        world.engine.durability.keep_all()
        world.flush()
        world.flushes_by_itself = False
        publisher.send(publish(b"t", b"4", qos=2, packet_id=4))
    world = World(tmp_path / "after" / "data")
    subscriber = world.connect(b"s", clean=False)
    packets = subscriber.take()[1:]
    assert pubrel(received) in packets
    came = [parse_publish(one) for one in packets if one[0] >> 4 == 3]
    assert [(one.body, one.packet_id, one.dup) for one in came[:1]] == [(b"3", sent, True)]
    assert [one.body for one in came[1:]] == ([b"4"] if left == "the log" else [])
    world.close()


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_message_in_the_place_of_one_that_a_power_cut_took_is_sent(tmp_path, steps):
    with ended_by_power_cut(tmp_path, LEFT["the journal"]) as world:
        subscriber = world.client(b"s", (b"t", 2), clean=False)
        publisher = world.client(b"p")
        world.flush()
        world.flushes_by_itself = False
        publisher.send(publish(b"t", b"lost", qos=2, packet_id=1))
        assert publisher.take() == []
        (got,) = subscriber.take_deliveries()
        assert got.body == b"lost"
        subscriber.send(*[pubrec(got.packet_id), pubcomp(got.packet_id)][:steps])
    world = World(tmp_path / "after" / "data")
    world.client(b"p").send(publish(b"t", b"new", qos=2, packet_id=1))
    subscriber = world.connect(b"s", clean=False)
    subscriber.take()
    world.close()
    world = World(tmp_path / "after" / "data")
    world.client(b"p").send(publish(b"t", b"last", qos=2, packet_id=1))
    assert world.connect(b"s", clean=False).bodies() == [b"new", b"last"]
    world.close()


@pytest.mark.parametrize("left", LEFT)
def test_what_is_under_way_of_a_subscription_that_ended_is_brought_to_its_end_after_a_power_cut(tmp_path, left):
    with ended_by_power_cut(tmp_path, LEFT[left]) as world:
        peer = world.client(b"c", (b"t", 2), clean=False)
        world.client(b"p").send(publish(b"t", b"one", qos=2, packet_id=1), pubrel(1))
        (one,) = peer.take_deliveries()
        assert peer.send(unsubscribe(2, b"t")).take() == [unsuback(2)]
        world.flushes_by_itself = False
        peer.send(pubrec(one.packet_id))  # which is lost, or not
    world = World(tmp_path / "after" / "data")
    peer = world.connect(b"c", clean=False)
    _, again = peer.take()
    assert again == pubrel(one.packet_id) or parse_publish(again).packet_id == one.packet_id
    peer.send(pubrec(one.packet_id), pubcomp(one.packet_id)).take()
    peer.send(subscribe(3, (b"t", 2))).take()
    world.client(b"p").send(publish(b"t", b"two", qos=2, packet_id=1), pubrel(1))
    assert [got.body for got in peer.take_deliveries()] == [b"two"]
    world.close()
