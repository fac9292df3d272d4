"""What a client is told in its CONNACK is written down before."""

from __future__ import annotations

import shutil

import pytest

from core.errors import StoreClosedError
from gateway.mqtt.reason_codes import ConnectCode
from tests.support import mqtt
from tests.support.mqtt_door import World

WILL = (b"w", b"gone", 1, False)


def arrive(world, **options):
    """Return a client whose CONNECT was handled, with no commit since."""
    world.flushes_by_itself = False
    return world.connect(**options)


@pytest.mark.parametrize("options", [{"clean": False}, {"will": WILL}], ids=["session", "will"])
def test_connack_comes_when_what_it_promises_is_on_disk(world, options):
    peer = arrive(world, **options)
    peer.send(mqtt.PINGREQ)
    assert peer.take() == []
    world.flushes_by_itself = True
    world.turn()
    assert peer.take() == [mqtt.connack(), mqtt.PINGRESP]


def test_connack_of_a_resumed_session_comes_when_it_is_on_disk_that_it_is_in_use(world):
    world.client(clean=False).vanish()
    peer = arrive(world, clean=False)
    assert peer.take() == []
    world.flushes_by_itself = True
    world.turn()
    assert peer.take() == [mqtt.connack(session_present=True)]


def test_connack_of_a_clean_session_comes_when_the_durable_one_before_it_is_gone_for_good(world):
    world.client(clean=False).vanish()
    peer = arrive(world)
    assert peer.take() == []
    world.flushes_by_itself = True
    world.turn()
    assert peer.take() == [mqtt.connack()]


def test_connack_of_a_client_of_which_nothing_is_kept_waits_for_no_commit(world):
    world.client(b"other", clean=False)
    waiting = arrive(world, client_id=b"durable", clean=False)
    assert world.connect(b"c").take() == [mqtt.connack()]
    assert waiting.take() == []
    world.connect(b"c").send(mqtt.DISCONNECT)  # takes over, and leaves
    assert world.connect(b"c").take() == [mqtt.connack()]


def test_all_that_come_in_one_turn_are_answered_by_one_commit(world):
    peers = [arrive(world, client_id=b"%d" % i, clean=False, will=WILL) for i in range(50)]
    world.flush()
    world.turn()
    assert [peer.take() for peer in peers] == [[mqtt.connack()]] * 50


def test_process_killed_after_the_connack_has_the_session_and_publishes_the_will(world, tmp_path):
    world.client(b"s", (b"w", 1), clean=False).vanish()
    peer = world.connect(clean=False, will=WILL)
    world.flushes_by_itself = False
    assert peer.take() == [mqtt.connack()]
    shutil.copytree(world.data_dir, tmp_path / "after")
    after = World(tmp_path / "after", make_engine=world.make_engine)
    assert after.connect(clean=False).take() == [mqtt.connack(session_present=True)]
    assert after.client(b"s", clean=False) is not None
    assert after.door.sessions.find(b"s").window.count_of(1) == 1  # the will
    after.close()


def test_client_that_leaves_before_its_connack_has_no_will_and_keeps_its_session(world):
    watcher = world.client(b"s", (b"w", 0))
    peer = arrive(world, clean=False, will=WILL)
    peer.vanish()
    world.flushes_by_itself = True
    world.turn()
    assert peer.take() == []
    assert watcher.bodies() == []
    assert world.connect(clean=False).take() == [mqtt.connack(session_present=True)]


def test_client_that_ends_its_half_after_its_connect_gets_its_connack_first(world):
    watcher = world.client(b"s", (b"w", 0))
    peer = arrive(world, clean=False, will=WILL)
    peer.handler.on_eof(world.now_ms)
    assert not peer.is_closed
    world.flushes_by_itself = True
    world.turn()
    assert peer.take() == [mqtt.connack()]
    assert peer.is_closed
    assert watcher.bodies() == [b"gone"]


def test_client_that_waits_too_long_for_its_connack_is_told_to_come_again(world):
    peer = arrive(world, clean=False, will=WILL)
    world.now_ms += world.settings.connect_timeout_ms
    peer.handler.on_timer(world.now_ms)
    assert peer.take() == [mqtt.connack(ConnectCode.SERVER_UNAVAILABLE)]
    assert peer.is_closed
    world.flushes_by_itself = True
    world.turn()
    assert peer.take() == []


@pytest.mark.at_once(reason="the claim is granted before the disk fails")
def test_client_whose_session_cannot_be_written_down_is_not_let_in(world):
    peer = arrive(world, clean=False, will=WILL)
    world.engine.durability.begin_flush()
    world.engine.durability.end_flush(StoreClosedError("the disk is gone"))
    while peer.transport.wants_turn:
        world.step()
    assert peer.take() == [mqtt.connack(ConnectCode.SERVER_UNAVAILABLE)]
    assert peer.is_closed


def test_client_that_is_taken_over_before_its_connack_gets_none(world):
    older = arrive(world, clean=False, will=WILL)
    newer = world.connect(clean=False)
    world.flushes_by_itself = True
    world.turn()
    assert older.is_closed
    assert older.take() == []
    assert newer.take() == [mqtt.connack(session_present=True)]


def test_a_session_ends_also_while_the_disk_has_no_room_for_another(world):
    for name in (b"old", b"will"):
        world.client(name, (b"t", 1), clean=False).vanish()
    world.set_room_for_definitions(False)
    assert world.connect(b"old").take() == [mqtt.connack()]
    assert world.connect(b"will", will=(b"w", b"gone", 0, False)).take() == [mqtt.connack(3)]
    world.set_room_for_definitions(True)
    assert world.connect(b"old", clean=False).take() == [mqtt.connack()]
    assert world.connect(b"will", clean=False).take() == [mqtt.connack(session_present=True)]


def test_a_session_that_is_not_on_the_disk_yet_is_not_resumed_before_it_is(world):
    world.flushes_by_itself = False
    first = world.connect(b"new", clean=False)
    world.set_room_for_definitions(False, is_stuck=True)
    second = world.connect(b"new", clean=False)
    assert (first.take(), second.take()) == ([], [])
    world.flushes_by_itself = True
    world.turn()
    assert second.take() == [mqtt.connack(session_present=True)]
    world.flushes_by_itself = False
    assert world.connect(b"new", clean=False).take() == [mqtt.connack(session_present=True)]
    world.flushes_by_itself = True


def test_a_session_is_resumed_on_a_full_disk_when_that_is_written_down(world):
    world.client(b"old", (b"t", 1), clean=False).vanish()
    world.set_room_for_definitions(False)
    world.flushes_by_itself = False
    peer = world.connect(b"old", clean=False)
    assert peer.take() == []
    world.set_room_for_definitions(False, is_stuck=True)
    assert world.connect(b"old", clean=False).take() == [mqtt.connack(session_present=True)]
    world.set_room_for_definitions(True)
    world.flushes_by_itself = True


def test_no_session_begins_or_ends_and_no_will_is_left_while_changes_wait_for_room(world):
    world.client(b"old", (b"t", 1), clean=False).vanish()
    world.set_room_for_definitions(False, is_stuck=True)
    world.flushes_by_itself = False
    refused = [
        world.connect(b"new", clean=False),
        world.connect(b"old"),
        world.connect(b"passing", will=(b"w", b"gone", 0, False)),
    ]
    assert [peer.take() for peer in refused] == [[mqtt.connack(3)]] * 3
    assert world.connect(b"passing").take() == [mqtt.connack()]
    assert world.connect(b"old", clean=False).take() == [mqtt.connack(session_present=True)]
    world.set_room_for_definitions(True)
    world.flushes_by_itself = True
    assert world.connect(b"new", clean=False).take() == [mqtt.connack()]
    assert world.connect(b"old", clean=False).take() == [mqtt.connack(session_present=True)]
