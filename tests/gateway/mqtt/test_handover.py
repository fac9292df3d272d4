"""The seam of a replay: exactly there it goes on in the filter's own queue, also where the process is killed."""

from __future__ import annotations

import shutil

import pytest
from hypothesis import given, settings, strategies as st

from tests.support.engines import MAKERS
from tests.support.mqtt import puback, pubcomp, publish, pubrec, subscribe, unsubscribe
from tests.support.mqtt_door import World

REPLAY = b"$replay/0/t/+"


def send(world, *bodies, topic=b"t/1"):
    packets = [publish(topic, body, qos=2, packet_id=number) for number, body in enumerate(bodies, 1)]
    world.connect(b"p").send(*packets)


def subscription(world):
    return world.door.sessions.find(b"a").subscriptions[REPLAY]


def take(peer):
    """Return the bodies of all that comes, taken in full at each step; what is sent again counts as well."""
    bodies = []
    while True:
        packets = peer.take()
        if not packets:
            return bodies
        for packet in packets:
            answer(peer, packet, bodies)


def answer(peer, packet, bodies):
    kind = packet[0] >> 4
    if kind == 3:
        packet_id = int.from_bytes(packet[-3:-1], "big") if packet[0] & 6 else 0
        bodies.append(packet[-1:])
        if packet[0] & 6:
            peer.send(puback(packet_id) if packet[0] & 2 else pubrec(packet_id))
    elif kind == 6:
        peer.send(pubcomp(int.from_bytes(packet[2:4], "big")))


def killed(world, folder):
    """Return what a kill of the process at this moment leaves, in a world of its own."""
    shutil.copytree(world.data_dir, folder)
    made = World(folder, inflight_max=world.settings.inflight_max, make_engine=world.make_engine)
    world.close()
    return made


def replay(world, qos, **options):
    peer = world.connect(b"a", **options)
    peer.send(subscribe(1, (REPLAY, qos)))
    return peer


@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("is_clean", [True, False])
def test_replay_reads_its_own_queue_from_the_first_moment_with_nothing_in_flight(world, qos, is_clean):
    send(world, b"0", b"1")
    peer = replay(world, qos, clean=is_clean)
    assert take(peer) == [b"0", b"1"]
    assert not subscription(world).is_replay
    send(world, b"2")
    assert take(peer) == [b"2"]


@pytest.mark.parametrize("qos", [1, 2])
def test_replay_that_always_has_something_in_flight_waits_at_the_seam_once(make_world, monkeypatch, qos):
    monkeypatch.setattr("gateway.mqtt.handover.TRIES_MAX", 8)
    world = make_world(inflight_max=10)
    sent, got = [], []
    peer = replay(world, qos, clean=False)
    session = world.door.sessions.find(b"a")
    assert not subscription(world).is_replay  # there was nothing
    peer.send(unsubscribe(2, REPLAY))
    send(world, b"a")
    peer.send(subscribe(3, (REPLAY, qos)))
    held = peer.take()
    for number in range(13):
        body = b"%c" % (65 + number)
        send(world, body)
        sent.append(body)
        packets = peer.take()  # of which the newest is never acknowledged yet
        for packet in held:
            answer(peer, packet, got)
        held = packets
        if session.window is None or not session.window.count_of(subscription(world).source):
            break
    for packet in held:
        answer(peer, packet, got)
    assert got + take(peer) == [b"a", *sent]
    assert not subscription(world).is_replay


@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("is_kept", [True, False])
def test_kill_at_the_moment_of_the_handover_leaves_no_gap_and_nothing_twice(make_world, tmp_path, qos, is_kept):
    world = make_world(is_sync=False)
    send(world, b"0", b"1")
    peer = replay(world, qos, clean=False)
    first = peer.take()
    got = []
    world.flushes_by_itself = False
    for packet in first:
        answer(peer, packet, got)
    got += take(peer)
    assert not subscription(world).is_replay  # it is over, and that is not on disk yet
    send(world, b"2", b"3")
    assert take(peer) == []
    if is_kept:
        world.flushes_by_itself = True
        world.turn()
        got += take(peer)
        assert got == [b"0", b"1", b"2", b"3"]
    after = killed(world, tmp_path / "after")
    send(after, b"4")
    assert got + take(after.connect(b"a", clean=False)) == [b"0", b"1", b"2", b"3", b"4"]
    assert not subscription(after).is_replay
    after.close()


def test_replay_that_is_given_up_at_its_seam_is_gone(make_world):
    world = make_world(is_sync=False)
    send(world, b"0")
    peer = replay(world, 1, clean=False)
    packets = peer.take()
    world.flushes_by_itself = False
    for packet in packets:
        answer(peer, packet, [])
    peer.send(unsubscribe(2, REPLAY), subscribe(3, (REPLAY, 1)))
    world.flushes_by_itself = True
    world.turn()
    assert take(peer) == [b"0"]


@pytest.mark.parametrize("make_engine", MAKERS.values(), ids=MAKERS)
@settings(max_examples=12, deadline=None)
@given(st.lists(st.sampled_from("ppqskcw"), max_size=14), st.integers(1, 2))
def test_every_message_once_also_where_the_process_is_killed(tmp_path_factory, make_engine, steps, qos):
    folder = tmp_path_factory.mktemp("handover")
    world = World(folder / "0", inflight_max=2, is_sync=False, make_engine=make_engine)
    try:
        sent, got, peer = [], [], None
        for number, step in enumerate([*steps, "s", "w", "p"]):
            if step == "p":
                sent.append(b"%c" % (65 + number))
                send(world, sent[-1])
            elif step == "q":
                send(world, b"o", topic=b"u")
            elif step == "k":
                world = killed(world, folder / str(number + 1))
                peer = peer and world.connect(b"a", clean=False)
            elif step == "c":
                peer = peer and world.connect(b"a", clean=False)
            elif step == "w":  # what was held back goes to disk
                world.flushes_by_itself = not world.flushes_by_itself or number >= len(steps)
                world.turn()
            elif peer is None:
                world.flushes_by_itself = True
                peer = replay(world, qos, clean=False)
                got += take(peer)
            else:
                got += take(peer)
        assert got + take(peer) == sent
    finally:
        world.close()
