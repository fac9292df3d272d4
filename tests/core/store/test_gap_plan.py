"""Which parts of a segment stay: what is needed, what is too little to go, and the sets that any of it names."""

from __future__ import annotations

import os

import pytest

from core.errors import CorruptRecordError
from core.settings import StoreSettings
from core.store.gap_plan import GAP_WORTH, GapPlan, NamesBusyError
from core.store.queue_names import QueueNames
from core.store.record import find_gap_end
from core.store.sealed_index import SealedIndex
from tests.support.store import light, open_store, publish

MIB = 1 << 20
SETTINGS = StoreSettings(segment_bytes=MIB, inline_dispatch_bytes=60)


class Planned:
    """A store's first segment, which is full, and plans for it."""

    def __init__(self, tmp_path, sends):
        self.store = open_store(tmp_path, SETTINGS)
        self.store._log.set_again_bytes = MIB  # each set has one record in the segment
        self.at = []
        routes = [self.store.make_route(b"T", 0, b"", light(*names)) for names, _ in sends]  # equal sets are one
        for route, (_, size) in zip(routes, sends, strict=True):
            batch = publish(self.store, route, b"x" * size)
            self.at.append(batch.physical_offset[0])
        publish(self.store, self.store.make_route(b"T", 0, b"", []), b"x" * 1_000_000)
        self.store.close()
        self.path = tmp_path / "commitlog" / f"{0:020d}"
        self.names = QueueNames.open(tmp_path / "index" / "queues")
        self.source = SealedIndex.open(tmp_path / "index" / f"{0:020d}")
        self.fd = os.open(self.path, os.O_RDONLY)

    def plan(self, **held):
        floors = {self.names.find(light(name)[0]): offset for name, offset in held.items()}
        plan = GapPlan(self.fd, 0, MIB, source=self.source, names=self.names, floors=floors)
        for _ in plan.steps():
            pass
        return plan

    def kept(self, **held):
        plan = self.plan(**held)
        for _ in plan.finish():
            pass
        return plan

    def close(self):
        os.close(self.fd)
        self.names.close()
        self.source.close()


@pytest.fixture
def make(tmp_path):
    made = []

    def planned(*sends):
        made.append(Planned(tmp_path, sends))
        return made[-1]

    yield planned
    made[-1].close()


def test_needed_records_stay_and_gaps_are_between_them(make):
    segment = make(("a", 1_000), ("b", 100_000), ("a", 1_000), ("b", 200_000), ("a", 10), ("b", 100_000))
    plan = segment.kept(a=0)
    assert [start for start, _ in plan.kept] == [segment.at[0], segment.at[2], segment.at[4]]
    assert [end for _, end in plan.kept] == [segment.at[1], segment.at[3], segment.at[5]]
    assert segment.kept(a=2).kept == plan.kept[2:]
    assert segment.plan(a=2).needed_bytes < segment.plan(a=0).needed_bytes < 12_000 + 3 * 8_192


def test_gaps_that_are_not_worth_it_are_left(make):
    segment = make(
        ("b", GAP_WORTH - 2_000), ("a", 10), ("b", GAP_WORTH - 2_000), ("a", 10), ("b", GAP_WORTH), ("a", 10)
    )
    plan = segment.kept(a=0)
    assert [start for start, _ in plan.kept] == [0, segment.at[5]]
    assert plan.kept[0][1] == segment.at[4]


def test_set_that_a_record_names_stays(make):
    many = [f"q{k}" for k in range(20)]
    segment = make(("b", 100_000), (many, 100_000), ("b", 100_000), (many, 10), ("b", 100_000))
    plan = segment.kept(q3=1)
    assert plan.kept[1][0] == segment.at[3]
    first, first_end = plan.kept[0]
    assert first_end == segment.at[1]
    assert segment.at[0] < first < segment.at[1]
    gaps = dict(plan.writes)
    assert find_gap_end(gaps[first_end] + bytes(200_000), 0, 0) == -1  # it bears its own place
    assert b"LMQ_GAP" in gaps[segment.at[3] - 10]


def test_segment_of_which_nothing_is_needed_is_emptied_and_keeps_its_time(make):
    segment = make(("a", 1_000), ("b", 100_000))
    plan = segment.kept(a=1)
    assert plan.kept == []
    ((_, front), _, (blank_at, _)) = plan.writes
    assert front[56:64] == segment.path.read_bytes()[56:64]
    assert plan.holes[-1] == (blank_at + 8, MIB)
    assert blank_at < 200


@pytest.mark.parametrize("byte", [4, 30, 120])
def test_segment_with_damage_in_what_is_needed_is_not_touched(make, byte):
    segment = make(("b", 100_000), ("a", 1_000), ("b", 100_000))
    with segment.path.open("r+b") as file:
        file.seek(segment.at[1] + byte)
        file.write(b"\xff")
    with pytest.raises(CorruptRecordError):
        segment.kept(a=0)
    segment.kept(a=1)  # what is not needed is not read


class GrowingNames:
    """Names as another thread sees them that makes room: not found for a while, or out of bounds."""

    def __init__(self, names, misses):
        self.names = names
        self.misses = misses

    def find(self, name):
        self.misses -= 1
        if self.misses < 0:
            return self.names.find(name)
        if self.misses % 2:
            raise IndexError
        return -1


def test_names_that_grow_meanwhile_are_looked_up_again(make):
    wide = [f"w{number}" for number in range(20)]
    site = make((wide, 500), ((), 300_000), (wide, 500))
    expected = site.kept(w3=1)
    names, site.names = site.names, GrowingNames(site.names, 0)
    plan = GapPlan(site.fd, 0, MIB, source=site.source, names=site.names, floors={names.find(light("w3")[0]): 1})
    list(plan.steps())
    site.names.misses = 9
    list(plan.finish())
    assert (plan.writes, plan.holes) == (expected.writes, expected.holes)
    plan = GapPlan(site.fd, 0, MIB, source=site.source, names=site.names, floors={names.find(light("w3")[0]): 1})
    list(plan.steps())
    site.names.misses = 1_000_000
    with pytest.raises(NamesBusyError):
        list(plan.finish())
    site.names = names
