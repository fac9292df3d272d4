"""Key files of segments: made behind the writer, gone with their segment, made again from the log."""

from __future__ import annotations

import pytest

from core.message import KeySearch
from core.settings import RetentionSettings, StoreSettings
from core.store import key_indexes
from tests.support.files import file_size_limit
from tests.support.store import NOW_MS, make_batch, open_store, retire

SETTINGS = StoreSettings(segment_bytes=64 << 10, inline_dispatch_bytes=300, retention=RetentionSettings(age_hours=1))
LATE_MS = NOW_MS + 100 * 3_600_000
QUEUE = b"T/0"


def fill(store, numbers):
    """Store messages, each with a key of its own, one of ten and a unique key; one of three goes to a light queue."""
    plain = store.make_route(b"T", 0, b"", [])
    light = store.make_route(b"T", 0, b"", [b"%LMQ%q"])
    for number in numbers:
        keys = b"KEYS\x01k%d tenth%d\x02UNIQ_KEY\x01u%d\x02" % (number, number % 10, number)
        store.append_batch(make_batch([(plain if number % 3 else light, b"x" * 200, keys)]), NOW_MS)


def make_all(store):
    for _ in range(1_000):
        store.flush()
        store.prepare()


def find_all(store, key, queue=QUEUE, *, is_back=True):
    """Return the offsets that may have a key, and those of messages that have to be read."""
    ref = store.find_queue(queue)
    first, end = store.min_offset(ref), store.max_offset(ref)
    found, untold, search = set(), set(), KeySearch()
    while first < end:
        search.ask(ref, first, end, key, is_back=is_back)
        if not store.keys.find(search):
            untold.add(end - 1 if is_back else first)
            end, first = (end - 1, first) if is_back else (end, first + 1)
            continue
        offsets = list(search.offsets[: search.count])
        assert offsets == sorted(offsets)
        found.update(offsets)
        assert first <= search.bound <= end
        first, end = (first, search.bound) if is_back else (search.bound, end)
    return found, untold


@pytest.fixture
def store(tmp_path):
    store = open_store(tmp_path / "data", SETTINGS)
    fill(store, range(600))
    make_all(store)
    yield store
    store.close()


@pytest.mark.parametrize("is_back", [False, True])
def test_only_messages_that_may_have_a_key_are_named_but_for_the_newest_segment(store, is_back):
    found, untold = find_all(store, b"k7", is_back=is_back)
    assert found == {7}
    assert untold == set(range(min(untold), 600))
    assert len(untold) < 250
    tenth = set(range(3, min(untold), 10))
    assert find_all(store, b"tenth3", is_back=is_back)[0] == tenth
    assert find_all(store, b"u30", b"%LMQ%q", is_back=is_back)[0] == {10}
    assert find_all(store, b"u31", b"%LMQ%q", is_back=is_back)[0] == set()


def test_nothing_is_told_before_the_files_are_made_and_all_is_right_after_a_start(tmp_path):
    store = open_store(tmp_path / "data", SETTINGS)
    fill(store, range(600))
    assert find_all(store, b"k7") == (set(), set(range(600)))
    make_all(store)
    told = find_all(store, b"k7")
    store.close()
    store = open_store(tmp_path / "data", SETTINGS)
    assert find_all(store, b"k7") == told
    store.close()


@pytest.mark.parametrize("damage", ["gone", "cut", "flipped", "of another segment"])
def test_a_file_that_is_missing_or_damaged_is_made_again(store, damage):
    told = find_all(store, b"k7")
    store.keys.finish()
    first, second = sorted((store.data_dir / "keys").iterdir())[:2]
    whole = first.read_bytes()
    if damage == "gone":
        first.unlink()
    elif damage == "cut":
        first.write_bytes(whole[:-9])
    elif damage == "flipped":
        first.write_bytes(whole[:200] + bytes(octet ^ 1 for octet in whole[200:]))
    else:
        first.write_bytes(second.read_bytes())
    found, untold = find_all(store, b"k7")
    assert found == set()
    assert 7 in untold
    make_all(store)
    assert find_all(store, b"k7") == told
    assert first.read_bytes() == whole


def test_a_file_goes_with_its_segment(store):
    folder = store.data_dir / "keys"
    assert len(list(folder.iterdir())) == len(list((store.data_dir / "commitlog").iterdir())) - 1
    assert retire(store, LATE_MS) > 1
    make_all(store)
    assert list(folder.iterdir()) == []
    fill(store, range(600, 1_200))
    make_all(store)
    assert {path.name for path in folder.iterdir()} <= {path.name for path in (store.data_dir / "commitlog").iterdir()}
    assert find_all(store, b"k700")[0] == {700}


def test_files_that_belong_to_no_full_segment_are_deleted_at_the_start(tmp_path):
    store = open_store(tmp_path / "data", SETTINGS)
    fill(store, range(300))
    make_all(store)
    store.close()
    folder = tmp_path / "data" / "keys"
    kept = {path.name for path in folder.iterdir()}
    for name in ("00000000009999999999", "00000000000000000000.new"):
        (folder / name).write_bytes(b"x")
    store = open_store(tmp_path / "data", SETTINGS)
    assert {path.name for path in folder.iterdir()} == kept
    store.close()


def test_a_segment_with_too_many_words_is_read(tmp_path):
    store = open_store(tmp_path / "data", SETTINGS)
    route = store.make_route(b"T", 0, b"", [])
    for number in range(90):
        keys = b"KEYS\x01" + b" ".join(b"%d" % word for word in range(number, number + 300)) + b"\x02"
        store.append_batch(make_batch([(route, b"x", keys)]), NOW_MS)
    make_all(store)
    assert not store.keys.is_making
    assert find_all(store, b"5") == (set(), set(range(90)))
    assert sum(path.stat().st_size for path in (store.data_dir / "keys").iterdir()) < 20_000
    store.close()


def test_a_full_disk_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(key_indexes, "_REST", 5)
    store = open_store(tmp_path / "data", SETTINGS)
    fill(store, range(600))
    store.flush()
    store.prepare()
    made = list((tmp_path / "data" / "keys").iterdir())
    with file_size_limit(1_000):
        for _ in range(100):
            store.keys.work(store.written_until)
    assert list((tmp_path / "data" / "keys").iterdir()) == made
    make_all(store)
    assert find_all(store, b"k7")[0] == {7}
    store.close()


def test_a_step_is_small_while_much_is_written(store):
    fill(store, range(600, 1_400))
    store.flush()
    store.prepare()
    taken = []
    for number in range(40):
        store.keys.work(store.written_until + (number + 1) * (1 << 20))
        taken.append(store.keys.is_making)
    assert sum(taken) > 5  # a call does little of the work
