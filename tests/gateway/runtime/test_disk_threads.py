from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from core.errors import DiskFullError, FlushFailedError
from core.room import Room
from core.settings import KIB, StoreSettings
from core.store import mapped_file, segments
from gateway.runtime import disk_threads
from gateway.runtime.disk_threads import (
    PREPARE_BUSY_S,
    PREPARE_IDLE_S,
    PREPARE_INTERVAL_S,
    PREPARE_STEP_BYTES,
    PrepareThread,
    RoomWatch,
    find_interval_s,
)
from tests.support import mqtt
from tests.support.gateway import running_gateway

SEGMENT_BYTES = 256 * KIB


class Disk:
    """Free room that a test sets, and what a watch tells of it."""

    def __init__(self, free_bytes=1_000):
        self.free_bytes = free_bytes
        self.error = None
        self.looks = 0
        self.room = Room(100)
        self.told = []
        self.heard = asyncio.Event()
        self.lacks_segment = False
        self.watch = RoomWatch(
            self.room, self.measure, asyncio.get_running_loop(), self.note, lambda: self.lacks_segment
        )

    def measure(self):
        self.looks += 1
        if self.error is not None:
            raise self.error
        return self.free_bytes

    def note(self, free_bytes, is_full):
        if self.room.note(free_bytes, is_full=is_full, now_ms=0):
            self.told.append((free_bytes, is_full))
        self.heard.set()

    async def until_told(self, *what):
        while self.told != [*what]:
            self.heard.clear()
            await asyncio.wait_for(self.heard.wait(), 20)


class Log:
    """A store whose `prepare` fails as it is told."""

    def __init__(self, error=None):
        self.written_until = 0
        self.prepared = threading.Event()
        self.error = error
        self.again_bytes = 0

    def prepare(self, again_bytes):
        self.again_bytes = again_bytes
        self.prepared.set()
        if self.error is not None:
            raise self.error


@pytest.mark.asyncio
async def test_want_of_room_ahead_of_the_writer_ends_nothing_and_is_said_once(caplog):
    log, failures = Log(DiskFullError("segment")), []
    disk = Disk()
    thread = PrepareThread(log, asyncio.get_running_loop(), failures.append, disk.watch)
    thread.start()
    for _ in range(3):
        assert await asyncio.to_thread(log.prepared.wait, 5)
        log.prepared.clear()
    assert await asyncio.to_thread(thread.stop, 5)
    assert failures == []
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    await disk.until_told((1_000, True))


@pytest.mark.asyncio
async def test_step_that_is_asked_for_comes_before_its_time(monkeypatch):
    monkeypatch.setattr(disk_threads, "PREPARE_INTERVAL_S", 60)
    monkeypatch.setattr(disk_threads, "PREPARE_IDLE_S", 60)
    log = Log()
    thread = PrepareThread(log, asyncio.get_running_loop(), lambda error: None, Disk().watch)
    thread.start()
    for _ in range(3):
        assert not log.prepared.is_set()
        thread.wake()
        assert await asyncio.to_thread(log.prepared.wait, 5)
        log.prepared.clear()
    assert await asyncio.to_thread(thread.stop, 5)
    assert not log.prepared.is_set()


@pytest.mark.parametrize(("least_bytes", "again_bytes"), [(8 << 20, 512 << 10), (1, 1), (0, 1 << 62)])
@pytest.mark.asyncio
async def test_step_is_wanted_when_it_is_time_to_look_at_the_room_again(least_bytes, again_bytes):
    disk, log = Disk(), Log()
    disk.room.free_bytes_min = least_bytes
    thread = PrepareThread(log, asyncio.get_running_loop(), lambda error: None, disk.watch)
    thread.start()
    assert await asyncio.to_thread(log.prepared.wait, 5)
    assert await asyncio.to_thread(thread.stop, 5)
    assert log.again_bytes == again_bytes


@pytest.mark.asyncio
async def test_disk_that_refuses_is_told_on_the_loop_and_ends_the_thread(caplog):
    caplog.set_level(logging.CRITICAL, "gateway.runtime.disk_threads")
    told = asyncio.get_running_loop().create_future()
    log = Log(OSError(5, "input/output error"))
    thread = PrepareThread(log, asyncio.get_running_loop(), told.set_result, Disk().watch)
    thread.start()
    assert isinstance(await asyncio.wait_for(told, 20), FlushFailedError)
    assert await asyncio.to_thread(thread.stop, 5)


@pytest.mark.asyncio
async def test_loop_is_told_when_the_room_gets_low_and_when_it_is_back():
    disk = Disk()
    disk.watch.look_first()
    assert disk.told == []
    thread = PrepareThread(Log(), asyncio.get_running_loop(), lambda error: None, disk.watch)
    thread.start()
    disk.free_bytes = 99
    await disk.until_told((99, False))
    disk.free_bytes = 200
    await disk.until_told((99, False), (200, False))
    assert disk.room.free_bytes == 200
    assert await asyncio.to_thread(thread.stop, 5)


@pytest.mark.asyncio
async def test_room_that_is_low_at_the_start_is_told_before_anything_else():
    disk = Disk(99)
    disk.watch.look_first()
    assert disk.told == [(99, False)]


@pytest.mark.asyncio
async def test_disk_is_looked_at_a_few_times_in_a_second_however_often_it_is_asked():
    disk = Disk()
    for _ in range(1_000):
        disk.watch.look(0, is_full=False)
    assert disk.looks == 1
    disk.watch.look(0, is_full=True)
    assert disk.looks == 2


@pytest.mark.asyncio
async def test_disk_is_looked_at_again_when_a_part_of_its_least_room_was_written():
    disk = Disk()
    disk.watch.look(1_000, is_full=False)
    for written_until in range(1_000, 1_007):
        disk.watch.look(written_until, is_full=False)
    assert disk.looks == 1
    disk.watch.look(1_007, is_full=False)  # a sixteenth of 100
    assert disk.looks == 2


@pytest.mark.asyncio
async def test_writer_that_is_ahead_of_the_thread_finds_that_the_room_is_low_itself():
    disk = Disk()
    thread = PrepareThread(Log(), asyncio.get_running_loop(), lambda error: None, disk.watch)  # it never comes
    thread.wake()
    await asyncio.sleep(0)
    assert disk.told == []
    disk.free_bytes = 99
    thread.wake()
    await asyncio.sleep(0)
    assert disk.told == [(99, False)]
    disk.free_bytes = 1_000
    thread.wake()
    await asyncio.sleep(0)
    assert disk.told == [(99, False)]  # the thread has more to see


@pytest.mark.asyncio
async def test_segment_that_finds_no_room_is_a_full_disk_for_the_thread_and_the_writer():
    disk = Disk()
    disk.lacks_segment = True
    disk.watch.look_beside()
    await asyncio.sleep(0)
    disk.watch.look(0, is_full=False)
    await asyncio.sleep(0)
    assert disk.told == [(1_000, True)]
    disk.lacks_segment = False
    disk.watch.look(1_000, is_full=False)
    await asyncio.sleep(0)
    assert disk.told == [(1_000, True), (1_000, False)]


class SmallDisk:
    """A disk on which the log alone takes room, by whole segments."""

    def __init__(self, folder, segment_count):
        self.folder = folder
        self.segment_count = segment_count

    def free_bytes(self, path=None):
        del path
        return (self.segment_count - len(list((self.folder / "commitlog").iterdir()))) * SEGMENT_BYTES


async def publish_until_held(gateway, reader, writer, packet_id):
    """Publish one by one until the connection is held; return the number of the first that was not answered before."""
    held = gateway.doors["mqtt"].metrics
    while not held.publishers_held:
        writer.write(mqtt.publish(b"a", bytes(8 * KIB), qos=1, packet_id=packet_id))
        answer = asyncio.ensure_future(reader.readexactly(4))
        assert await asyncio.wait_for(answer, 20) == mqtt.puback(packet_id)
        packet_id += 1
    return packet_id


@pytest.mark.parametrize(
    ("free_bytes_min", "segments_free"),
    [pytest.param(4 * SEGMENT_BYTES, 3, id="mark"), pytest.param(0, 0, id="full")],
)
@pytest.mark.asyncio
async def test_publisher_is_held_in_time_where_the_prepare_thread_never_gets_to_run(
    tmp_path, monkeypatch, free_bytes_min, segments_free
):
    monkeypatch.setattr(PrepareThread, "start", lambda self: None)
    disk = SmallDisk(tmp_path, 8)
    monkeypatch.setattr(segments, "free_bytes", disk.free_bytes)
    monkeypatch.setattr(mapped_file, "free_bytes", disk.free_bytes)
    store = StoreSettings(segment_bytes=SEGMENT_BYTES, disk_free_bytes_min=free_bytes_min)
    async with running_gateway(tmp_path, free_bytes=disk.free_bytes, store=store) as gateway:
        reader, writer = await asyncio.open_connection(*gateway.listening["mqtt"])
        writer.write(mqtt.connect(b"sender"))
        await reader.readexactly(4)
        packet_id = await publish_until_held(gateway, reader, writer, 1)
        assert disk.free_bytes() == segments_free * SEGMENT_BYTES
        disk.segment_count *= 2
        writer.write(mqtt.publish(b"a", b"held", qos=1, packet_id=packet_id))
        gateway.room_watch.look(gateway.store.written_until, is_full=False)
        assert await asyncio.wait_for(reader.readexactly(4), 20) == mqtt.puback(packet_id)
        await publish_until_held(gateway, reader, writer, packet_id + 1)
        assert disk.free_bytes() == segments_free * SEGMENT_BYTES
        writer.close()


@pytest.mark.asyncio
async def test_disk_that_cannot_be_looked_at_changes_nothing_and_is_said_once(caplog, monkeypatch):
    disk = Disk(99)
    disk.watch.look_first()
    disk.error = OSError(5, "input/output error")
    for now_s in range(10):
        monkeypatch.setattr(disk_threads.time, "monotonic", lambda now_s=now_s: 10**9 + now_s)
        disk.watch.look(0, is_full=False)
    await asyncio.sleep(0)
    assert disk.told == [(99, False)]
    assert [record.levelname for record in caplog.records] == ["WARNING"]


@pytest.mark.parametrize(
    ("bytes_per_s", "interval_s"),
    [
        (0, PREPARE_IDLE_S),
        (PREPARE_STEP_BYTES, PREPARE_IDLE_S),  # a step a second
        (20 * PREPARE_STEP_BYTES, 0.05),
        (1 << 40, PREPARE_INTERVAL_S),
    ],
)
@pytest.mark.parametrize("first_s", [PREPARE_INTERVAL_S, PREPARE_IDLE_S])
def test_steps_come_as_often_as_much_is_written(first_s, bytes_per_s, interval_s):
    found_s = first_s
    for _ in range(10):
        found_s = find_interval_s(found_s, round(found_s * bytes_per_s))
    assert found_s == pytest.approx(interval_s, rel=1e-4)


def test_steps_are_not_that_seldom_while_they_have_more_to_do():
    assert find_interval_s(PREPARE_IDLE_S, 0, is_busy=True) == PREPARE_BUSY_S < PREPARE_IDLE_S
    assert find_interval_s(PREPARE_IDLE_S, 1 << 40, is_busy=True) == PREPARE_INTERVAL_S


def test_steps_get_rarer_by_halves_and_come_at_once_where_much_was_written():
    assert find_interval_s(0.01, 0) == 0.02
    assert find_interval_s(PREPARE_IDLE_S, 1 << 40) == PREPARE_INTERVAL_S
