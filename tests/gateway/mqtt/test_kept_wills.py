"""What is written down of wills, and what a kill before a commit makes of it."""

from __future__ import annotations

import shutil

import pytest

from gateway.mqtt.kept_wills import OVER, KeptWills
from gateway.mqtt.packets import Will
from gateway.mqtt.session import NO_SLOT
from gateway.mqtt.session_rows import StoredWill, pack_will
from tests.support import mqtt
from tests.support.stores import FullPlaces, MemoryPlaces, MemoryTable

WILL = (b"w/t", b"gone", 1, False)


def make_will(body=b"gone"):
    return StoredWill(b"c", b"me", b"\x7f\0\0\1\0\0\7\x5b", Will(b"w/t", body, 1, is_retained=True), 17, login=b"{}")


class Disk:
    def __init__(self):
        self.rows, self.places, self.waiting = MemoryTable(), MemoryPlaces(), []

    def open(self):
        wills = KeptWills(self.rows, self.places, self.waiting.append)
        self.places.reserve(wills.slots())
        return wills


@pytest.fixture
def killed(world, tmp_path):
    """Return what kills the process before its next commit, and starts another."""

    def kill():
        world.data_dir = shutil.copytree(world.data_dir, tmp_path / "killed")
        world.close()
        world.flushes_by_itself = True
        world.open()

    return kill


@pytest.fixture
def watcher(world):
    """Return what gives the bodies that a session got since it was asked the last time."""
    world.client(b"w", (b"w/#", 1), clean=False).vanish()

    def take():
        peer = world.connect(b"w", clean=False)
        found = peer.take_deliveries()
        peer.send(*[mqtt.puback(one.packet_id) for one in found]).vanish()
        return [one.body for one in found]

    return take


def test_will_of_a_client_that_left_is_not_published_after_a_kill_before_the_commit(world, watcher, killed):
    peer = world.client(b"c", will=WILL)
    world.flushes_by_itself = False
    peer.send(mqtt.DISCONNECT)
    assert peer.is_closed
    killed()
    assert watcher() == []
    assert len(world.store.table("mqtt_wills")) == 0


def test_will_that_was_published_is_not_published_again_after_a_kill_before_the_commit(world, watcher, killed):
    peer = world.client(b"c", will=WILL)
    world.flushes_by_itself = False
    peer.vanish()
    killed()
    assert watcher() == [b"gone"]


def test_will_of_a_client_that_is_connected_again_is_its_own_after_a_kill(world, watcher, killed):
    world.client(b"c", will=WILL).send(mqtt.DISCONNECT)
    world.client(b"c", will=(b"w/t", b"second", 1, False))
    world.flushes_by_itself = False
    killed()
    assert watcher() == [b"second"]


def test_will_that_was_not_accepted_is_not_published_nor_the_one_before_it(world, watcher, killed):
    peer = world.client(b"c", will=WILL)
    world.flushes_by_itself = False
    peer.send(mqtt.DISCONNECT)
    assert world.connect(b"c", will=WILL).take() == []
    killed()
    assert watcher() == []


def test_will_says_the_same_after_a_start():
    disk, stored = Disk(), make_will()
    disk.open().keep(stored)
    (back,) = disk.open().read()
    assert (back.client_id, back.user, back.host, back.due_ms) == (b"c", b"me", stored.host, 17)
    assert (back.login, back.will, back.slot) == (b"{}", stored.will, stored.slot)
    disk.open().keep(back)
    assert disk.places.used_count == 1


def test_row_of_a_version_before_has_no_slot():
    disk = Disk()
    disk.rows.put(b"c", pack_will(make_will()))
    wills = disk.open()
    (back,) = wills.read()
    assert (back.slot, back.will) == (NO_SLOT, make_will().will)
    wills.forget(back)
    wills.give_back()
    assert (len(disk.rows), disk.waiting) == (0, [])


def test_will_is_written_down_where_there_is_no_room_for_its_mark():
    disk, stored = Disk(), make_will()
    disk.places = FullPlaces()
    wills = disk.open()
    wills.keep(stored)
    (back,) = disk.open().read()
    assert (back.slot, back.will) == (NO_SLOT, stored.will)
    wills.forget(stored)
    assert len(disk.rows) == 0


def test_slot_is_given_back_when_no_row_can_name_it_any_more():
    disk, first, second = Disk(), make_will(), make_will(b"second")
    wills = disk.open()
    wills.keep(first)
    slot = first.slot
    wills.forget(first)
    assert (disk.places.get(slot), first.slot, len(disk.rows)) == (OVER, NO_SLOT, 0)
    wills.keep(second)
    wills.give_back()
    wills.give_back()
    (kept,) = disk.waiting
    assert second.slot != slot
    assert disk.places.used_count == 2
    kept(None)
    assert disk.places.owned == {second.slot}


def test_will_that_is_over_is_removed_at_a_start():
    disk, stored = Disk(), make_will()
    disk.open().keep(stored)
    disk.places.set(stored.slot, OVER)
    wills = disk.open()
    assert wills.read() == []
    assert len(disk.rows) == 0
    wills.give_back()
    disk.waiting.pop()(None)
    assert disk.places.used_count == 0
