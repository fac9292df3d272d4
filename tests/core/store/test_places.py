"""Places: numbers in slots of a mapped file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from core.errors import DataFolderUnusableError, DiskFullError
from core.store.places import VALUE_MAX, VALUE_MIN, Places
from core.store.sync_plan import sync_now
from tests.support.files import file_size_limit

values = st.integers(VALUE_MIN, VALUE_MAX)


def test_a_fresh_slot_holds_zero(tmp_path):
    places = Places.open(tmp_path / "p")
    assert [places.acquire() for _ in range(3)] == [0, 1, 2]
    assert places.get(1) == 0
    places.close()


@given(st.lists(values, min_size=1, max_size=50))
@settings(max_examples=30, deadline=None)
def test_numbers_come_back_without_a_sync(tmp_path_factory, numbers):
    path = tmp_path_factory.mktemp("places") / "p"
    places = Places.open(path)
    slots = [places.acquire() for _ in numbers]
    for slot, number in zip(slots, numbers, strict=True):
        places.set(slot, 7)
        places.set(slot, number)
    again = Places.open(path)
    again.reserve(slots)
    assert [again.get(slot) for slot in slots] == numbers
    again.close()
    places.close()


@pytest.mark.parametrize("value", [VALUE_MIN - 1, VALUE_MAX + 1, 1 << 63])
def test_numbers_over_48_bits_are_refused(tmp_path, value):
    places = Places.open(tmp_path / "p")
    slot = places.acquire()
    with pytest.raises(OverflowError):
        places.set(slot, value)
    assert places.get(slot) == 0
    places.close()


@pytest.mark.parametrize("slot", [-1, 1, 8_189, 8_190, 1 << 40])
def test_a_slot_without_an_owner_is_refused(tmp_path, slot):
    places = Places.open(tmp_path / "p")
    places.acquire()
    for call in (
        lambda: places.get(slot),
        lambda: places.set(slot, 1),
        lambda: places.release(slot),
    ):
        with pytest.raises(IndexError):
            call()
    places.close()


@given(number=values.filter(bool), bit=st.integers(0, 63))
@settings(max_examples=80, deadline=None)
def test_a_flipped_bit_reads_as_zero_and_is_counted(tmp_path_factory, number, bit):
    path = tmp_path_factory.mktemp("places") / "p"
    places = Places.open(path)
    places.set(places.acquire(), number)
    places.close()
    whole = bytearray(path.read_bytes())
    whole[16 + bit // 8] ^= 1 << bit % 8
    path.write_bytes(whole)
    places = Places.open(path)
    places.reserve([0])
    for _ in range(2):
        assert places.get(0) == 0
        assert places.damaged_count == 1  # it is told once
    places.set(0, 5)
    assert places.get(0) == 5
    places.close()


def test_a_released_slot_is_given_again_only_after_its_end_is_durable(tmp_path):
    places = Places.open(tmp_path / "p")
    slot = places.acquire()
    places.set(slot, 99)
    places.release(slot)
    assert places.acquire() == 1
    sync_now(places)
    sync_now(places)
    assert places.acquire() == 2
    sync_now(places)
    assert places.acquire() == slot
    assert places.get(slot) == 0
    places.close()


def test_slots_without_owners_at_start_are_free_at_once(tmp_path):
    places = Places.open(tmp_path / "p")
    for _ in range(5):
        places.set(places.acquire(), 8)
    places.close()
    places = Places.open(tmp_path / "p")
    places.reserve([1, 4])
    assert [places.acquire() for _ in range(4)] == [0, 2, 3, 5]
    assert [places.get(slot) for slot in range(6)] == [0, 8, 0, 0, 8, 0]
    places.close()


def test_the_file_grows(tmp_path):
    places = Places.open(tmp_path / "p")
    slots = [places.acquire() for _ in range(30_000)]
    for slot in slots:
        places.set(slot, 3 * slot)
    places.close()
    places = Places.open(tmp_path / "p")
    places.reserve(slots)
    assert [places.get(slot) for slot in slots] == [3 * slot for slot in slots]
    places.reserve([100_000])
    assert places.get(100_000) == 0
    places.close()


def test_a_full_disk_refuses_a_new_slot_and_nothing_else(tmp_path):
    places = Places.open(tmp_path / "p")
    slots = [places.acquire() for _ in range((65_536 - 16) // 8)]
    with file_size_limit(70_000):
        with pytest.raises(DiskFullError):
            places.acquire()
        places.set(slots[-1], 12)
    assert places.get(slots[-1]) == 12
    assert places.acquire() == len(slots)
    places.close()


def test_another_file_is_refused(tmp_path):
    (tmp_path / "p").write_bytes(b"something else")
    with pytest.raises(DataFolderUnusableError):
        Places.open(tmp_path / "p")


class PlacesModel(RuleBasedStateMachine):
    """Random use and reopening beside a dict."""

    folders = None

    def __init__(self):
        super().__init__()
        self.path = self.folders.mktemp("places") / "p"
        self.places = Places.open(self.path)
        self.numbers = {}

    @rule()
    def acquire(self):
        slot = self.places.acquire()
        assert slot not in self.numbers
        self.numbers[slot] = 0

    @precondition(lambda self: self.numbers)
    @rule(number=values, choose=st.randoms(use_true_random=False))
    def set_one(self, number, choose):
        slot = choose.choice(list(self.numbers))
        self.places.set(slot, number)
        self.numbers[slot] = number

    @precondition(lambda self: self.numbers)
    @rule(choose=st.randoms(use_true_random=False))
    def release(self, choose):
        slot = choose.choice(list(self.numbers))
        self.places.release(slot)
        del self.numbers[slot]

    @rule()
    def sync(self):
        sync_now(self.places)

    @rule(clean=st.booleans())
    def reopen(self, clean):
        before = self.places
        if clean:
            before.close()
        self.places = Places.open(self.path)
        self.places.reserve(self.numbers)
        if not clean:
            before.close()

    @rule()
    def read(self):
        assert {slot: self.places.get(slot) for slot in self.numbers} == self.numbers

    def teardown(self):
        self.read()
        self.places.close()


def test_random_use_with_reopening(tmp_path_factory):
    model = type("Model", (PlacesModel,), {"folders": tmp_path_factory})
    case = model.TestCase
    case.settings = settings(max_examples=20, stateful_step_count=30, deadline=None)
    case().runTest()


KILLED = """
import itertools, pathlib, sys
from core.store.places import Places
places = Places.open(pathlib.Path(sys.argv[1]))
slot = places.acquire()
for number in itertools.count(1):
    places.set(slot, number << 20 | number)
    sys.stdout.write(f"{number}\\n")
    sys.stdout.flush()
"""


@pytest.mark.slow
def test_a_killed_writer_loses_no_number_that_it_reported(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path / "p")],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    for _ in range(1_000):
        reported = int(process.stdout.readline())
    process.send_signal(signal.SIGKILL)
    reported = int((process.stdout.read().split() or [reported])[-1])
    process.wait()
    process.stdout.close()
    places = Places.open(tmp_path / "p")
    places.reserve([0])
    assert places.get(0) in {number << 20 | number for number in (reported, reported + 1)}
    places.close()
