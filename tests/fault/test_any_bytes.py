"""Whatever stands in a file of the data folder: the gateway starts, or says in one line which file it cannot use."""

from __future__ import annotations

import random
import shutil
from array import array
from contextlib import suppress

import pytest

from core.errors import LmqError, StoreError
from core.message import StoredBatch
from core.settings import StoreSettings
from core.store.reader import StoreReader
from tests.support import mqtt
from tests.support.build import IS_COMPILED
from tests.support.mqtt_door import NOW_MS, World
from tests.support.store import publish

pytestmark = pytest.mark.slow

SETTINGS = StoreSettings(segment_bytes=64 * 1024, inline_dispatch_bytes=60)
HALF = 4
NUMBERS = range(HALF) if IS_COMPILED else range(HALF, 2 * HALF)  # each build has half of the rounds


def open_world(folder):
    return World(folder, store_settings=SETTINGS, inflight_max=2)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return a folder with something in each of its files."""
    folder = tmp_path_factory.mktemp("whole") / "data"
    world = open_world(folder)
    publisher = world.client(b"p")
    for number in range(4):
        publisher.send(mqtt.publish(b"r/%d" % number, b"kept", qos=1, packet_id=1, retain=True))
    world.connect(b"s", clean=False).send(mqtt.subscribe(1, (b"r/#", 1))).take()
    route = world.store.make_route(b"T", 0, b"", [b"%%LMQ%%q%d" % number for number in range(9)])
    for _ in range(90):
        publish(world.store, route, bytes(900))
    world.broker.consumer_offsets.commit(b"g", b"T/0", 3)
    popped = world.broker.pop.open(b"%LMQ%q1", b"g")
    popped.take(StoredBatch(16), 9, 1 << 30, NOW_MS + 60_000, NOW_MS)
    popped.ack_many(array("q", [0, 2]), 2)
    world.close()
    return folder


def names_of(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and path.name != "lock")


def changed(chance, data, others):
    """Return other bytes: flipped, cut, of another file, or none of ours."""
    how = chance.randrange(6)
    if how == 0:
        return chance.randbytes(len(data))
    if how == 1:
        return data[: chance.randrange(len(data) + 1)]
    if how == 2:
        return chance.choice(others)
    if how == 3:
        start = chance.randrange(len(data) + 1)
        return data[:start] + bytes(chance.randrange(5_000)) + data[start:]
    made = bytearray(data)
    used = len(data.rstrip(b"\0")) or 1
    for _ in range(1 if how == 4 else 20):
        at = chance.randrange(min(used, 64) if chance.random() < 0.5 else used)
        if at < len(made):
            made[at] ^= 1 << chance.randrange(8)
    return bytes(made)


def read_all(folder):
    """Read the log as another process does."""
    reader = StoreReader.open(folder)
    into = StoredBatch(64)
    for info in reader.segments():
        at = info.base
        while at < info.end:
            at = reader.scan(info.base, at, info.end, into)
            for row in range(into.count):
                reader.dispatch_names(into, row)
    into.clear()
    reader.close()


def opens(folder):
    """Start what a gateway starts, and use it a little; return whether it started, and its error where it did not."""
    try:
        world = open_world(folder)
    except LmqError as error:
        return False, str(error)
    into = StoredBatch(16)
    for ref in range(world.store.queue_count()):
        offset = world.store.min_offset(ref)
        while world.store.read(ref, offset, into, 16, 1 << 20):
            offset = into.next_offset
    into.clear()
    publish(world.store, world.store.make_route(b"T", 0, b"", []), b"more")
    world.connect(b"s", clean=False).take()
    world.close()
    return True, ""


@pytest.mark.parametrize("number", NUMBERS)
def test_any_bytes_in_any_file_end_in_a_start_or_in_a_line(whole, tmp_path, number):
    chance = random.Random(number)
    names = names_of(whole)
    contents = [(whole / name).read_bytes() for name in names]
    for name, data in zip(names, contents, strict=True):
        folder = tmp_path / "data"
        shutil.copytree(whole, folder)
        (folder / name).write_bytes(changed(chance, data, contents))
        with suppress(StoreError):
            read_all(folder)
        is_open, said = opens(folder)
        assert "\n" not in said or "store.accept_loss" in said  # what a log lacks is told line by line
        if is_open:
            assert opens(folder)[0]  # what was mended stays so
        shutil.rmtree(folder)


@pytest.mark.parametrize("name", ["pop", "mqtt_retained"])
def test_a_journal_in_the_place_of_another_is_refused_in_a_line(whole, tmp_path, name):
    folder = tmp_path / "data"
    shutil.copytree(whole, folder)
    (other,) = {"pop", "mqtt_retained"} - {name}
    shutil.copy(folder / "journals" / other, folder / "journals" / name)
    with pytest.raises(LmqError, match=f"journals/{name}: it is the journal '{other}', not '{name}'"):
        open_world(folder)
