from __future__ import annotations

import pytest

from core.store.dispatched import UNKNOWN, read_dispatch
from core.store.embedded import EmbeddedEngine
from tests.support.store import light, open_store, publish


@pytest.fixture
def engine(tmp_path):
    engine = EmbeddedEngine(open_store(tmp_path), is_sync=False)
    yield engine
    engine.store.close()


def find(engine, names):
    """Store two messages in the queues, and return what is found of the second."""
    place = publish(engine.store, engine.make_route(b"T", 0, b"", names), b"x", b"y").physical_offset[1]
    record = []
    engine.find_record(place, record.append)
    found = []
    engine.find_dispatch(record[0], found.append)
    return record[0], found[0]


def test_a_record_with_its_names_says_its_offset_in_each_queue(engine):
    _, found = find(engine, light("b", "a"))
    assert found == list(zip(light("b", "a"), [1, 1], strict=True))


def test_a_record_with_a_set_says_its_queues_and_leaves_the_offsets_to_them(engine):
    names = light(*(f"queue-{k:04}" for k in range(200)))
    _, found = find(engine, names)
    assert found == [(name, UNKNOWN) for name in names]


def test_a_record_in_no_light_queue_says_none(engine):
    assert find(engine, [])[1] == []


def test_damage_gives_nothing(engine):
    record, _ = find(engine, light(*(f"queue-{k:04}" for k in range(200))))
    assert read_dispatch(record, lambda _: None) == []  # the set's record is gone
    assert read_dispatch(record, lambda _: record) == []  # or is another
    assert read_dispatch(b"", lambda _: None) == []
    cut = record.replace(b"LMQ_SET\x01", b"LMQ_SET\x01x")
    assert read_dispatch(cut, lambda _: None) == []


def test_names_and_offsets_that_differ_in_number_give_nothing(engine):
    record, _ = find(engine, light("a", "b"))
    broken = record.replace(b"INNER_MULTI_QUEUE_OFFSET\x011,1", b"INNER_MULTI_QUEUE_OFFSET\x011;1")
    assert broken != record
    assert read_dispatch(broken, lambda _: None) == []
