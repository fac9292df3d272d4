from __future__ import annotations

from array import array

import pytest
from hypothesis import given, settings, strategies as st

from core.message import StoredBatch
from core.store.queue_reader import read_record
from tests.support.records import encode_record
from tests.support.store import NOW_MS, light, make_batch, make_record, open_store, publish, read_queue, retire

SHARED_QUEUES = ("a", "b", "c")


@pytest.fixture
def data_dir(tmp_path):
    """Two hundred messages in a few segments, whose 51st record is damaged, in a folder that was closed."""
    store = open_store(tmp_path)
    route = store.make_route(b"T", 0, b"", light("a"))
    batch = publish(store, route, *(b"%03d" % k + b"x" * 900 for k in range(200)))
    store.close()
    place = batch.physical_offset[50]
    damage(tmp_path, place + 95)
    return tmp_path


def damage(data_dir, physical_offset):
    size = 64 * 1024
    path = data_dir / "commitlog" / f"{physical_offset // size * size:020d}"
    data = bytearray(path.read_bytes())
    data[physical_offset % size] ^= 0x40
    path.write_bytes(data)


def test_damaged_record_is_never_given_and_the_rest_is(data_dir):
    store = open_store(data_dir)
    found = read_queue(store, b"%LMQ%a")
    assert [offset for offset, _ in found] == [k for k in range(200) if k != 50]
    into = StoredBatch(4)
    assert store.read(store.find_queue(b"%LMQ%a"), 50, into, 1, 1) == 1
    assert into.queue_offset[0] == 51
    offsets = array("q", [49, 50, 51])
    done = 0
    seen = []
    while done < 3:
        done += store.read_offsets(store.find_queue(b"T/0"), offsets[done:], 3 - done, into)
        seen += into.queue_offset[: into.count]
    assert seen == [49, 51]
    assert len(store.report.damaged_at) <= 1
    assert store.damaged_count == len(store.report.damaged_at) + 3  # met by each of the three reads
    store.close()


def test_last_entry_that_is_damaged_is_passed_by_next_offset(tmp_path):
    store = open_store(tmp_path)
    batch = publish(store, store.make_route(b"T", 0, b"", []), *(b"x" * 900,) * 100)
    store.close()
    damage(tmp_path, batch.physical_offset[20] + 90)
    store = open_store(tmp_path)
    into = StoredBatch(4)
    assert not store.read_at(batch.physical_offset[20], into)
    assert store.read_at(batch.physical_offset[21], into)
    assert into.queue_offset[0] == -1
    assert store.read(store.find_queue(b"T/0"), 100, into, 4, 1) == 0
    assert into.next_offset == 100
    store.close()


@pytest.fixture
def retired(tmp_path):
    """A store that has dropped all that queue `a` held, 100 messages; what follows is in no light queue."""
    store = open_store(tmp_path)
    publish(store, store.make_route(b"T", 0, b"", light("a")), *(b"x" * 900,) * 100)
    publish(store, store.make_route(b"U", 0, b"", []), *(b"x" * 900,) * 150)
    store.flush()
    store.prepare()
    late_ms = NOW_MS + 1000 * 3_600_000
    assert retire(store, late_ms) > 1
    yield store
    store.close()


@pytest.mark.parametrize("offset", [-1, 0, 57, 99, 100, 200])
def test_queue_whose_messages_are_all_gone_goes_on_at_its_end(retired, offset):
    ref = retired.find_queue(b"%LMQ%a")
    into = StoredBatch(4)
    assert (retired.min_offset(ref), retired.max_offset(ref)) == (100, 100)
    assert retired.read(ref, offset, into, 4, 1) == 0
    assert into.next_offset == 100


def test_reader_before_all_that_is_kept_goes_on_after_what_it_is_given(retired):
    ref = retired.find_queue(b"%LMQ%a")
    publish(retired, retired.make_route(b"T", 0, b"", light("a")), b"new", b"newer")
    into = StoredBatch(4)
    assert retired.read(ref, 57, into, 1, 1) == 1
    assert (into.queue_offset[0], into.next_offset) == (100, 101)
    into.clear()


def test_read_of_no_message_at_all_moves_nobody(data_dir):
    store = open_store(data_dir)
    into = StoredBatch(4)
    assert store.read(store.find_queue(b"%LMQ%a"), 7, into, 0, 1) == 0
    assert into.next_offset == 7
    store.close()


def test_queue_of_which_only_damage_is_left_goes_on_at_its_end(tmp_path):
    store = open_store(tmp_path)
    batch = publish(store, store.make_route(b"T", 0, b"", light("a")), b"x" * 900, b"y" * 900)
    publish(store, store.make_route(b"U", 0, b"", []), *(b"x" * 900,) * 100)
    store.close()
    for i in range(2):
        damage(tmp_path, batch.physical_offset[i] + 95)
    store = open_store(tmp_path)
    into = StoredBatch(4)
    assert store.read(store.find_queue(b"%LMQ%a"), 0, into, 1, 1) == 0
    assert into.next_offset == store.max_offset(store.find_queue(b"%LMQ%a")) == 2
    assert store.damaged_count == 2
    store.close()


def test_times_are_searched_past_damage(data_dir):
    store = open_store(data_dir)
    assert store.offset_at_time(store.find_queue(b"T/0"), 1) == 0
    assert store.offset_at_time(store.find_queue(b"T/0"), 1 << 50) == 200
    assert store.offset_at_time(store.find_queue(b"T/0"), 1 << 50, upper=True) == 199
    store.close()


def test_copied_record_reads_as_it_did_in_the_log():
    raw = encode_record(make_record(physical_offset=1 << 35, body=b"kept"), with_crc=True)
    into = StoredBatch(1)
    assert read_record(raw, into)
    assert bytes(into.buf[into.body_start[0] : into.body_end[0]]) == b"kept"
    assert not read_record(raw[:50], into)
    assert not read_record(raw[:-1], into)
    assert into.count == 0


def rows_of(batch):
    """Return all that a batch says of its messages."""
    columns = [
        batch.record_start, batch.record_end, batch.topic_start, batch.topic_end, batch.body_start, batch.body_end,
        batch.properties_start, batch.properties_end, batch.flag, batch.sys_flag, batch.attempt, batch.queue_offset,
        batch.physical_offset, batch.born_ms, batch.store_ms,
    ]  # fmt: skip
    rows = [tuple(column[i] for column in columns) for i in range(batch.count)]
    return batch.next_offset, rows, [bytes(batch.buf[row[0] : row[1]]) for row in rows]


def fill_shared(store, sizes_and_queues):
    """Write messages, each into some of the queues that share records."""
    for size, members in sizes_and_queues:
        names = [name for k, name in enumerate(SHARED_QUEUES) if members >> k & 1]
        batch = make_batch([(store.make_route(b"T", 0, b"", light(*names)), bytes([size % 251]) * size)])
        store.append_batch(batch, 1)


@settings(max_examples=60, deadline=None)
@given(
    messages=st.lists(st.tuples(st.integers(0, 4_000), st.integers(0, 7)), min_size=1, max_size=60),
    reads=st.lists(
        st.tuples(
            st.sampled_from([0, 0, 0, 1]),  # of which store
            st.integers(0, len(SHARED_QUEUES) - 1),
            st.integers(0, 40),
            st.integers(1, 20),
            st.sampled_from([1, 5_000, 1 << 30]),
            st.booleans(),  # with an attempt that a consumer counts in the column
        ),
        max_size=30,
    ),
)
def test_a_batch_that_was_used_before_reads_as_a_new_one(tmp_path_factory, messages, reads):
    folder = tmp_path_factory.mktemp("logs")
    stores = [open_store(folder / name) for name in ("first", "second")]
    fill_shared(stores[0], messages)
    fill_shared(stores[1], [(size + 1, members) for size, members in messages])
    used = StoredBatch(16)
    for of, queue, offset, count_max, bytes_max, counts in reads:
        queue_ref = stores[of].find_queue(b"%LMQ%" + SHARED_QUEUES[queue].encode())
        if queue_ref < 0:
            continue
        fresh = StoredBatch(16)
        assert stores[of].read(queue_ref, offset, used, count_max, bytes_max) == stores[of].read(
            queue_ref, offset, fresh, count_max, bytes_max
        )
        assert rows_of(used) == rows_of(fresh)
        if counts and used.count:
            used.attempt[used.count - 1] = 9
        used.clear()
        fresh.clear()
    for store in stores:
        store.close()


def test_equal_fill_numbers_mean_equal_messages(tmp_path):
    store = open_store(tmp_path)
    fill_shared(store, [(10, 3)] * 5 + [(20, 1)] + [(30, 3)] * 5)
    a, b = (store.find_queue(key) for key in light("a", "b"))
    into = StoredBatch(16)
    store.read(a, 0, into, 5, 1 << 20)
    number = into.fill_number
    store.read(b, 0, into, 5, 1 << 20)
    assert into.fill_number == number > 0
    store.read(b, 0, into, 3, 1 << 20)
    assert into.fill_number == number
    store.read(b, 0, into, 6, 1 << 20)  # the sixth of `b` is not the sixth of `a`
    seventh = into.fill_number
    assert seventh != number
    store.read(a, 0, into, 6, 1 << 20)
    assert into.fill_number not in {number, seventh}
    into.clear()
    store.close()


def test_damaged_record_is_not_given_to_the_second_queue_either(data_dir):
    store = open_store(data_dir)
    into = StoredBatch(200)
    seen = []
    for key in (b"T/0", b"%LMQ%a"):
        offset = 0
        while store.read(store.find_queue(key), offset, into, 200, 1 << 30):
            seen += into.queue_offset[: into.count]
            offset = into.next_offset
    assert seen == [k for k in range(200) if k != 50] * 2
    into.clear()
    store.close()
