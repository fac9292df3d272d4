"""What goes and what stays, and what a data folder is like after it."""

from __future__ import annotations

import os

import pytest

from core.message import StoredBatch
from core.settings import RetentionSettings, StoreSettings
from core.store import puncher
from core.store.reader import StoreReader
from tests.support.store import NOW_MS, give_back, light, open_store, publish, read_queue, retire

HOUR_MS = 3_600_000
LATE_MS = NOW_MS + 100 * HOUR_MS
MIB = 1 << 20
SETTINGS = StoreSettings(segment_bytes=MIB, inline_dispatch_bytes=400, retention=RetentionSettings(age_hours=1))
FILLER = b"x" * 1000


def disk_bytes(store):
    """Return the room of the log by what the file system says."""
    return sum(path.stat().st_blocks * 512 for path in (store.data_dir / "commitlog").iterdir())


def segment_count(store):
    return len(list((store.data_dir / "commitlog").iterdir()))


@pytest.fixture
def store(tmp_path):
    store = open_store(tmp_path / "data", SETTINGS)
    yield store
    store.close()


def fill(store, *names, segments=4, rare=b"rare", each=400, now_ms=NOW_MS):
    """Fill segments with messages to `names`, every `each`-th of them also to a light queue `rare`; return those."""
    common = store.make_route(b"T", 0, b"LMQ_TOPIC\x01t\x02", light(*names))
    seldom = store.make_route(b"T", 0, b"LMQ_TOPIC\x01t\x02", light(*names, rare.decode()))
    until = store.written_until + segments * MIB
    number = 0
    sent = []
    while store.written_until < until:
        body = b"%d:" % number + FILLER
        publish(store, seldom if number % each == 0 else common, body, now_ms=now_ms)
        if number % each == 0:
            sent.append(body)
        number += 1
    store.flush()
    store.prepare()
    return sent


def end(store):
    """Let the last filled segment be full and past its time."""
    publish(store, store.make_route(b"T", 0, b"", light("end")), b"x" * 900_000, now_ms=LATE_MS)
    publish(store, store.make_route(b"T", 0, b"", light("end")), b"x" * 900_000, now_ms=LATE_MS)
    store.flush()
    store.prepare()


def held(store, name, offset=0):
    return store.find_queue(light(name)[0]), offset


def test_messages_that_somebody_needs_cost_little_more_than_themselves(store):
    sent = fill(store, "busy")
    end(store)
    before = disk_bytes(store)
    give_back(store, LATE_MS, held(store, "rare"))
    assert segment_count(store) == 6
    assert disk_bytes(store) < before - 3.5 * MIB
    assert store.log_bytes() <= disk_bytes(store) + MIB
    assert store.retention.bytes_punched > 3.5 * MIB
    assert read_queue(store, b"%LMQ%rare") == list(enumerate(sent))
    assert read_queue(store, b"%LMQ%end")[0][0] == 0
    busy = store.find_queue(b"%LMQ%busy")
    assert store.max_offset(busy) > store.min_offset(busy) - 1 > 0
    assert store.damaged_count == 0


@pytest.mark.parametrize("is_rebuilt", [False, True])
@pytest.mark.parametrize("queues", [1, 60])
def test_folder_with_gaps_is_opened_again(store, queues, is_rebuilt):
    names = [f"busy{k}" for k in range(queues)]
    sent = fill(store, *names)
    end(store)
    give_back(store, LATE_MS, held(store, "rare"))
    used = disk_bytes(store)
    data_dir = store.data_dir
    ends = {name: store.max_offset(store.find_queue(name)) for name in light(*names, "rare", "end")}
    store.close()
    if is_rebuilt:
        for path in (data_dir / "index").iterdir():
            if path.name.isdecimal():
                path.unlink()
    again = open_store(data_dir, SETTINGS)
    assert not again.report.damaged_at
    assert not again.report.entries_lost
    assert read_queue(again, b"%LMQ%rare") == list(enumerate(sent))
    assert {name: again.max_offset(again.find_queue(name)) for name in ends} == ends
    for name in light(*names[:2]):
        offsets = [offset for offset, _ in read_queue(again, name)]
        assert offsets == sorted(set(offsets))
    assert again.damaged_count == 0
    assert disk_bytes(again) <= used + MIB // 8
    again.close()


def test_reader_of_the_folder_meets_no_damage(store):
    sent = fill(store, "busy")
    end(store)
    give_back(store, LATE_MS, held(store, "rare"))
    store.flush()
    reader = StoreReader.open(store.data_dir)
    into = StoredBatch(64)
    bodies = []
    for info in reader.segments():
        assert info.first_store_ms >= NOW_MS
        start = info.base
        while start < info.end:
            start = reader.scan(info.base, start, info.end, into)
            bodies += [bytes(into.buf[into.body_start[i] : into.body_end[i]]) for i in range(into.count)]
    assert reader.damaged == []
    assert [body for body in bodies if body in sent] == sent
    reader.close()


def test_what_is_not_needed_any_more_goes_too(store):
    sent = fill(store, "busy")
    end(store)
    give_back(store, LATE_MS, held(store, "rare"))
    kept = disk_bytes(store)
    give_back(store, LATE_MS, held(store, "rare", len(sent) - 1))
    assert segment_count(store) < 6
    assert read_queue(store, b"%LMQ%rare", len(sent) - 1) == [(len(sent) - 1, sent[-1])]
    give_back(store, LATE_MS)
    assert segment_count(store) <= 2
    assert disk_bytes(store) < kept
    assert read_queue(store, b"%LMQ%rare") == []
    assert store.max_offset(store.find_queue(b"%LMQ%rare")) == len(sent)


@pytest.mark.parametrize(("rounds", "steps"), [(1, 1), (1, 8), (2, 2), (3, 3)])
def test_what_is_not_needed_any_more_goes_although_its_room_was_just_given_back(store, rounds, steps, monkeypatch):
    """What was needed when that began is not what is needed when it ends."""
    monkeypatch.setattr(puncher, "_HOLES_A_STEP", 1)
    fill(store, "busy", each=50)
    end(store)
    for _ in range(rounds):
        retire(store, LATE_MS, held(store, "rare"))
        for _ in range(steps):
            store.prepare()
    give_back(store, LATE_MS)
    assert segment_count(store) <= 2


def test_what_is_old_waits_for_its_hour_and_what_is_over_the_size_does_not(store):
    fill(store, "a", rare=b"a")
    end(store)
    store.retention.is_by_age = False
    before = segment_count(store)
    give_back(store, LATE_MS)
    assert segment_count(store) == before
    store.retention.reload(RetentionSettings(age_hours=1, bytes_max=3 * MIB))
    give_back(store, LATE_MS)
    left = segment_count(store)
    assert 1 < left < before
    store.retention.is_by_age = True
    store.retention.reload(RetentionSettings(age_hours=1))
    give_back(store, LATE_MS)
    assert segment_count(store) < left


def test_files_are_told_with_what_they_are_kept_for(store):
    fill(store, "busy")
    fill(store, "busy", rare=b"other", segments=1)
    assert [file.is_due for file in store.retention.tell()] == [False] * segment_count(store)
    end(store)
    for _ in range(10):
        store.prepare()
    busy, rare = held(store, "busy")[0], held(store, "rare")[0]
    retire(store, LATE_MS, (busy, 1 << 40), (rare, 0))
    files = list(store.retention.tell())
    names = sorted(path.name for path in (store.data_dir / "commitlog").iterdir())
    assert [file.name for file in files] == names
    assert [file.is_newest for file in files] == [False] * (len(files) - 1) + [True]
    due = [file for file in files if file.is_due]
    assert files[: len(due)] == due
    assert 4 <= len(due) <= len(files) - 2
    assert [file.needed for file in files[len(due) :]] == [None] * (len(files) - len(due))
    needed = [file for file in due if file.is_held]
    assert needed[:4] == due[:4]
    for file in needed:
        assert file.needed > 0
        assert [ref for ref in store.retention.holders_of(file.base) if ref is not None] == [rare]
    assert {file.last_ms for file in due} == {NOW_MS}
    assert {file.first_ms for file in due[1:]} == {NOW_MS}
    assert files[-1].first_ms == LATE_MS <= files[-1].last_ms
    assert list(store.retention.holders_of(files[-1].base)) == []


def test_a_file_is_due_no_more_where_it_may_stay_longer(store):
    fill(store, "busy")
    end(store)
    for _ in range(10):
        store.prepare()
    retire(store, LATE_MS, held(store, "rare"))
    assert any(file.is_due for file in store.retention.tell())
    store.retention.reload(RetentionSettings(age_hours=200))
    retire(store, LATE_MS, held(store, "rare"))
    assert not any(file.is_due for file in store.retention.tell())


def test_when_a_file_was_written_to_is_told_by_its_own_time_where_the_log_is_not_read(store):
    fill(store, "busy")
    data_dir = store.data_dir
    store.close()
    paths = sorted((data_dir / "commitlog").iterdir())
    os.utime(paths[0], (NOW_MS // 1000 + 60, NOW_MS // 1000 + 60))
    again = open_store(data_dir, SETTINGS)
    first, *_, newest = again.retention.tell()
    again.close()
    assert (first.first_ms, first.last_ms) == (None, NOW_MS + 60_000)
    assert newest.is_newest


def test_a_file_that_went_meanwhile_is_told_all_the_same(store):
    fill(store, "busy")
    files = store.retention.tell()
    paths = sorted((store.data_dir / "commitlog").iterdir())
    for path in paths:
        path.rename(path.with_suffix(".away"))
    assert [file.last_ms for file in files] == [None] * (len(paths) - 2) + [NOW_MS] * 2
    for path in paths:
        path.with_suffix(".away").rename(path)


def test_an_empty_log_has_no_files(store):
    assert list(store.retention.tell()) == []
    assert list(store.retention.holders_of(0)) == []
