from __future__ import annotations

import random
import shutil

import pytest

from core.errors import DiskFullError
from core.message import FLAG_MARK, StoredBatch
from core.settings import StoreSettings
from core.store.layout import UNIT_BEGINS, UNIT_ENDS, UNIT_GOES_ON
from core.store.torn_unit import part_of
from tests.support.store import NOW_MS, SMALL, light, make_batch, open_store, publish, read_folder, read_queue

PAGE = 4096
SETS = StoreSettings(segment_bytes=64 * 1024, inline_dispatch_bytes=64)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "data"


def route(store, names=("a",)):
    return store.make_route(b"T", 0, b"", light(*names))


def killed(folder, name):
    """Return what a kill at this moment leaves, in a folder of its own."""
    return shutil.copytree(folder, folder.parent / name)


def bodies(store, key=b"%LMQ%a"):
    return [body for _, body in read_queue(store, key)]


def reopened(folder, settings=SMALL):
    """Return what queue and log hold after a start, and once a message more came."""
    store = open_store(folder, settings)
    found = bodies(store)
    publish(store, route(store), b"next")
    assert bodies(store) == [*found, b"next"]
    assert [offset for offset, _ in read_queue(store, b"%LMQ%a")] == list(range(len(found) + 1))
    assert [body for _, body in read_queue(store, b"T/0")] == [*found, b"next"]
    store.close()
    again = open_store(folder, settings)
    assert bodies(again) == [*found, b"next"]
    again.close()
    assert read_folder(folder)[0] == [*found, b"next"]
    return found


def parts(store):
    into = StoredBatch(64)
    store.read(store.find_queue(b"T/0"), 0, into, 64, 1 << 30)
    return [part_of(into, i) for i in range(into.count)]


def unit(store, *batches):
    store.keep_together(True)
    for some in batches:
        publish(store, route(store), *some)
    store.keep_together(False)


def test_records_say_where_their_unit_begins_and_ends(folder):
    store = open_store(folder)
    publish(store, route(store), b"alone")
    unit(store, [b"1", b"2"], [b"3"])
    unit(store, [b"only"])
    unit(store, [])
    publish(store, route(store), b"alone")
    assert parts(store) == [0, UNIT_BEGINS, UNIT_GOES_ON, UNIT_ENDS, 0, 0]
    store.close()


def test_upper_half_of_an_exact_message_is_no_part():
    batch = StoredBatch(1)
    batch.sys_flag[0] = UNIT_BEGINS << 16
    batch.flag[0] = FLAG_MARK | 2
    assert part_of(batch, 0) == 0
    batch.flag[0] = FLAG_MARK | 1
    assert part_of(batch, 0) == UNIT_BEGINS


def test_a_kill_at_any_moment_leaves_all_of_a_unit_or_nothing(folder):
    store = open_store(folder)
    publish(store, route(store), b"before")
    left = []
    store.keep_together(True)
    for k in range(4):
        publish(store, route(store), b"%d" % k)
        left.append(killed(folder, f"after-{k}"))
    store.keep_together(False)
    whole = killed(folder, "whole")
    publish(store, route(store), b"later")
    behind = killed(folder, "behind")
    store.close()
    assert [reopened(each) for each in left] == [[b"before"]] * 4
    assert reopened(whole) == [b"before", b"0", b"1", b"2", b"3"]
    assert reopened(behind) == [b"before", b"0", b"1", b"2", b"3", b"later"]
    assert reopened(folder) == [b"before", b"0", b"1", b"2", b"3", b"later"]


def test_a_unit_that_the_log_begins_with_is_cut(folder):
    store = open_store(folder)
    store.keep_together(True)
    publish(store, route(store), b"1", b"2")
    left = killed(folder, "left")
    store.keep_together(False)
    store.close()
    assert reopened(left) == []


@pytest.mark.parametrize("rolls", [1, 3])
def test_a_unit_over_the_ends_of_segments_is_cut_where_it_begins(folder, rolls):
    store = open_store(folder)
    publish(store, route(store), b"before")
    store.flush()
    body = bytes(30_000)
    store.keep_together(True)
    publish(store, route(store), *[body] * (2 * rolls + 1))
    store.prepare()  # beside it, on another thread: files of what is full
    left = killed(folder, "left")
    store.keep_together(False)
    whole = killed(folder, "whole")
    store.close()
    assert len(list((left / "commitlog").iterdir())) == rolls + 1
    assert reopened(left) == [b"before"]
    assert reopened(whole) == [b"before"] + [body] * (2 * rolls + 1)


def test_a_unit_that_begins_a_segment_is_cut(folder):
    store = open_store(folder)
    body = bytes(30_000)
    publish(store, route(store), body, body)
    store.keep_together(True)
    publish(store, route(store), body, body, body)
    left = killed(folder, "left")
    store.keep_together(False)
    store.close()
    assert reopened(left) == [body, body]


def test_sets_between_the_records_of_a_unit_go_with_it(folder):
    names = [f"q{k:03d}" for k in range(40)]
    store = open_store(folder, SETS)
    publish(store, route(store, ["a", *names[:20]]), b"before")
    store.keep_together(True)
    publish(store, route(store, ["a", *names]), b"1")
    publish(store, route(store, ["a", *names[:20]]), b"2")
    left = killed(folder, "left")
    store.keep_together(False)
    whole = killed(folder, "whole")
    store.close()
    assert reopened(left, SETS) == [b"before"]
    assert reopened(whole, SETS) == [b"before", b"1", b"2"]


def test_a_unit_that_found_no_room_ends_there_and_stays(folder, monkeypatch):
    store = open_store(folder)
    publish(store, route(store), b"before")
    monkeypatch.setattr("core.store.mapped_file.free_bytes", lambda _: 0)
    store.keep_together(True)
    with pytest.raises(DiskFullError):
        publish(store, route(store), *[bytes(30_000)] * 5)
    store.keep_together(False)
    monkeypatch.undo()
    assert parts(store)[-1] == UNIT_ENDS
    left = killed(folder, "left")
    held = bodies(store)
    store.close()
    assert reopened(left) == held


def test_a_unit_without_its_end_in_what_was_on_disk_is_left_alone(folder):
    store = open_store(folder)
    store.keep_together(True)
    publish(store, route(store), b"1", b"2")
    store.flush()  # no flush begins there: only a log from elsewhere can be like that
    left = killed(folder, "left")
    store.keep_together(False)
    store.close()
    assert reopened(left) == [b"1", b"2"]


def newest(folder):
    return max((folder / "commitlog").iterdir())


@pytest.mark.parametrize("hole", [0, 1, 2, 3])
def test_pages_that_a_power_cut_took_from_a_unit_take_all_of_it(folder, hole):
    store = open_store(folder)
    publish(store, route(store), b"x" * (3 * PAGE))
    store.flush()
    start = store.written_until
    unit(store, *[[b"%d" % k * PAGE] for k in range(4)])
    publish(store, route(store), b"later")  # no flush covered it either
    left = killed(folder, "left")
    store.close()
    path = newest(left)
    data = bytearray(path.read_bytes())
    at = start + hole * (PAGE + 200)
    data[at : at + PAGE] = bytes(PAGE)
    path.write_bytes(data)
    assert reopened(left) == [b"x" * (3 * PAGE)]


def test_damage_in_a_unit_costs_itself_where_nothing_tells_what_was_on_disk(folder):
    store = open_store(folder)
    publish(store, route(store), b"before")
    start = store.written_until
    unit(store, [b"1", b"2", b"3"])
    publish(store, route(store), b"later")
    store.close()
    log = folder.parent / "elsewhere" / "commitlog"  # it alone is handed over
    shutil.copytree(folder / "commitlog", log)
    data = bytearray(newest(log.parent).read_bytes())
    at = data.index(b"2\x01T", start)
    data[at] ^= 1
    newest(log.parent).write_bytes(data)
    store = open_store(log.parent)
    assert bodies(store) == [b"before", b"1", b"3", b"later"]
    store.close()


@pytest.mark.parametrize("seed", range(10))
def test_any_pages_may_be_lost_and_a_cut_may_be_broken_off(folder, seed):
    chance = random.Random(seed)
    store = open_store(folder)
    publish(store, route(store), b"before")
    store.flush()
    first = store.written_until
    units = []
    for k in range(6):
        some = [b"%d.%d." % (k, j) + bytes(chance.choice((0, 500, 20_000))) for j in range(chance.choice((1, 3, 9)))]
        units.append(some)
        unit(store, some)
    left = killed(folder, "left")
    store.close()
    for path in sorted((left / "commitlog").iterdir()):
        data = bytearray(path.read_bytes())
        for at in range(0, len(data), PAGE):
            if int(path.name) + at > first and chance.random() < 0.1:
                data[at : at + PAGE] = bytes(PAGE)
        path.write_bytes(data)
    found = reopened(left)
    assert found[0] == b"before"
    for some in units:
        there = [body in found for body in some]
        assert all(there) or not any(there)


def test_batches_of_several_routes_and_without_one(folder):
    store = open_store(folder)
    store.keep_together(True)
    store.append_batch(make_batch([(None, b"-"), (route(store), b"1"), (None, b"-")]), NOW_MS)
    store.append_batch(make_batch([(None, b"-")]), NOW_MS)
    store.append_batch(make_batch([(route(store, ["b"]), b"2"), (None, b"-")]), NOW_MS)
    store.keep_together(False)
    assert parts(store) == [UNIT_BEGINS, UNIT_ENDS]
    assert bodies(store, b"%LMQ%b") == [b"2"]
    store.close()
