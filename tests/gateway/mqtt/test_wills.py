"""Wills beside the door's own tests in test_handler_wills.py."""

from __future__ import annotations

from gateway.auth.permissions import ALL, Permissions
from gateway.mqtt.packets import Will
from gateway.mqtt.session_rows import StoredWill
from tests.support.mqtt_door import STORE

STORED = StoredWill(b"c", b"alice", b"\x7f\0\0\1\0\0\7\x5b", Will(b"w/t", b"gone", 0, is_retained=False))


def test_will_is_kept_until_it_is_forgotten(world):
    wills = world.door.wills
    wills.keep(STORED)
    assert len(world.store.table("mqtt_wills")) == 1
    wills.forget(STORED)
    assert len(world.store.table("mqtt_wills")) == 0


def test_will_that_may_not_be_published_is_logged(world, caplog):
    watcher = world.client(b"w", (b"w/#", 0))
    for may in (None, Permissions(publish=False)):
        world.door.wills.publish(STORED, may, world.now_ms)
    world.door.wills.publish(STORED, ALL, world.now_ms)
    world.turn()
    assert watcher.bodies() == [b"gone"]
    assert caplog.text.count("denied will client=c user=alice name=w/t") == 2
    assert world.counts.refused == {"will_not_authorized": 2}


def test_will_that_cannot_be_stored_is_logged(make_world, caplog):
    world = make_world(store_settings=STORE.model_copy(update={"message_bytes_max": 1_000}))
    large = StoredWill(b"c", b"alice", STORED.host, Will(b"w/t", b"x" * 1_001, 0, is_retained=False))
    world.door.wills.publish(large, ALL, world.now_ms)
    assert "will not published client=c" in caplog.text
    assert world.counts.dropped == {"will": 1}
