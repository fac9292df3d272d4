"""Random histories with dispatch sets, then damage in the record of one: what the log still says is served.

With the sealed indexes there and without them: each undamaged message is in each of its queues at its old offset; where
the information is gone, whatever is served is right, and the offsets after it are.
"""

from __future__ import annotations

import random
import shutil

import pytest

from core.settings import StoreSettings
from core.store.message_store import MessageStore
from core.store.set_copies import find_copies
from tests.support.store import NOW_MS, publish, read_queue

SEGMENT = 64 * 1024
SETTINGS = StoreSettings(segment_bytes=SEGMENT, inline_dispatch_bytes=120)
QUEUES = [b"%%LMQ%%queue-%02d" % k for k in range(40)]
TOPICS = [b"T", b"U"]


class History:
    """A store that is filled at random, closed, and what each of its queues holds by offset."""

    def __init__(self, folder, seed):
        self.chance = random.Random(seed)
        self.folder = folder
        store = MessageStore.open(folder, SETTINGS, now_ms=NOW_MS)
        store._log.set_again_bytes = self.chance.choice([1_000, 1_000_000])
        chance = self.chance
        many = [chance.sample(QUEUES, chance.randint(8, 30)) for _ in range(4)]
        lists = [*many, *many, *(chance.sample(QUEUES, chance.randint(0, 3)) for _ in range(4))]
        routes = [store.make_route(chance.choice(TOPICS), 0, b"", names) for names in lists]
        self.held = {key: {} for key in [*QUEUES, b"T/0", b"U/0"]}
        size_max = chance.choice([100, 1_000, 4_000])
        for number in range(chance.randint(40, 200)):
            route = chance.choice(routes)
            body = b"%d:" % number + bytes(chance.choice([128 - 120, chance.randrange(size_max)]))
            offset = publish(store, route, body).queue_offset[0]
            self.held[route.topic + b"/0"][offset] = body
            for name in route.dispatch.names:
                self.held[name][store.max_offset(store.find_queue(name)) - 1] = body
        store.close()
        self.places = self.find_sets()

    def find_sets(self):
        """Return the records of sets: their segment's file, position and size."""
        found = []
        for path in sorted((self.folder / "commitlog").iterdir()):
            data = path.read_bytes()
            for copy in find_copies(data, int(path.name)):
                at = copy.place - int(path.name)
                found.append((path.name, at, int.from_bytes(data[at : at + 4], "big")))
        return found

    def damaged(self, target, name, change, *, keeps_index):
        """Return a copy of the folder whose segment `name` was changed by `change`."""
        shutil.copytree(self.folder, target)
        path = target / "commitlog" / name
        data = bytearray(path.read_bytes())
        change(data)
        path.write_bytes(data)
        if not keeps_index:
            shutil.rmtree(target / "index")
        return target


def served(folder):
    """Return what each queue serves, and its next offset."""
    store = MessageStore.open(folder, SETTINGS, now_ms=NOW_MS)
    found = {}
    for key in [*QUEUES, b"T/0", b"U/0"]:
        ref = store.find_queue(key)
        found[key] = (dict(read_queue(store, key)), store.max_offset(ref) if ref >= 0 else 0)
    report = store.report
    store.close()
    return found, report


@pytest.mark.parametrize("seed", range(25))
def test_a_flipped_bit_in_the_record_of_a_set_costs_no_queue_a_message(tmp_path, seed):
    history = History(tmp_path / "sound", seed)
    for number, keeps_index in enumerate([True, False, False, False]):
        name, at, size = history.chance.choice(history.places)
        bit = history.chance.randrange(8 * size)

        def flip(data, bit=bit, at=at):
            data[at + bit // 8] ^= 1 << bit % 8

        folder = history.damaged(tmp_path / str(number), name, flip, keeps_index=keeps_index)
        found, report = served(folder)
        for key, held in history.held.items():
            assert found[key] == (held, len(held)), (key, at, bit)
        assert report.damaged_at == report.sets_restored_at
        assert not report.unplaced
        assert not keeps_index or len(report.damaged_at) <= 1


@pytest.mark.parametrize("seed", range(25))
def test_damage_of_any_kind_to_a_set_never_gives_a_message_another_offset(tmp_path, seed):
    history = History(tmp_path / "sound", seed)
    chance = history.chance
    for number in range(4):
        name, at, size = chance.choice(history.places)
        start = chance.randrange(size)
        end = chance.randint(start + 1, size)

        wiped = bytes(end - start) if chance.random() < 0.3 else chance.randbytes(end - start)

        def wipe(data, start=at + start, end=at + end, wiped=wiped):
            data[start:end] = wiped

        folder = history.damaged(tmp_path / str(number), name, wipe, keeps_index=chance.random() < 0.3)
        found, _ = served(folder)
        for key, held in history.held.items():
            messages, next_offset = found[key]
            assert messages.items() <= held.items(), key
            assert next_offset > max(messages, default=-1), key
        for key in (b"T/0", b"U/0"):
            assert found[key] == (history.held[key], len(history.held[key]))


@pytest.mark.parametrize("keeps_head", [True, False])
@pytest.mark.parametrize("is_first", [True, False])
def test_names_and_offsets_that_are_wiped_out_come_from_another_copy(tmp_path, keeps_head, is_first):
    """A later copy tells the names, and where the queues stood; without a checksum the counts must agree."""
    store = MessageStore.open(tmp_path / "sound", SETTINGS, now_ms=NOW_MS)
    store._log.set_again_bytes = 1
    names = QUEUES[:20]
    route = store.make_route(b"T", 0, b"", names)
    bodies = [b"%d:" % number + bytes(700) for number in range(200)]
    for body in bodies:
        publish(store, route, body)
    store.close()
    held = dict(enumerate(bodies))
    for path in sorted((tmp_path / "sound" / "commitlog").iterdir()):
        data = bytearray(path.read_bytes())
        copies = find_copies(bytes(data), int(path.name))
        assert len(copies) > 1
        copy = copies[0] if is_first else copies[1]
        at = copy.place - int(path.name)
        size = int.from_bytes(data[at : at + 4], "big")
        start = at + len(copy.head) if keeps_head else at
        shutil.copytree(tmp_path / "sound", tmp_path / path.name)
        data[start : at + size] = bytes(at + size - start)
        (tmp_path / path.name / "commitlog" / path.name).write_bytes(data)
        shutil.rmtree(tmp_path / path.name / "index")
        found, report = served(tmp_path / path.name)
        for name in names:
            assert found[name] == (held, len(held)), (path.name, name)
        assert report.sets_restored_at == [copy.place]


def test_messages_whose_queues_nobody_knows_are_told_with_their_positions(tmp_path, caplog):
    store = MessageStore.open(tmp_path / "d", SETTINGS, now_ms=NOW_MS)
    route = store.make_route(b"T", 0, b"", QUEUES[:20])
    batch = publish(store, route, b"1", b"2", b"3")
    store.close()
    path = min((tmp_path / "d" / "commitlog").iterdir())
    data = bytearray(path.read_bytes())
    data[: batch.physical_offset[0]] = bytes(batch.physical_offset[0])
    path.write_bytes(data)
    found, report = served(tmp_path / "d")
    assert report.unplaced == {0: [3, batch.physical_offset[0], batch.physical_offset[2]]}
    assert (
        f"physical_offset=0 messages=3 first={batch.physical_offset[0]} last={batch.physical_offset[2]}" in caplog.text
    )
    assert found[QUEUES[0]][0] == {}
    assert found[QUEUES[0]][1] >= 3 or found[QUEUES[0]][1] == 0
