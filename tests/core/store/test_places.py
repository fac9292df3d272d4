"""Places: numbers in slots of a mapped file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from array import array

import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from core.errors import DataFolderUnusableError, DiskFullError
from core.store.places import OLD_HEADER, VALUE_MAX, VALUE_MIN, Places
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


@pytest.mark.parametrize("slot", [-1, 1, 4_094, 4_095, 1 << 40])
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


def flip(path, slot, *bits):
    """Flip bits of a slot, counted from its first word's lowest."""
    whole = bytearray(path.read_bytes())
    for bit in bits:
        whole[16 + 16 * slot + bit // 8] ^= 1 << bit % 8
    path.write_bytes(whole)


@given(numbers=st.lists(values, min_size=1, max_size=6), bit=st.integers(0, 127))
@settings(max_examples=200, deadline=None)
def test_after_a_flipped_bit_the_last_good_number_holds_and_is_told_once(tmp_path_factory, numbers, bit):
    path = tmp_path_factory.mktemp("places") / "p"
    places = Places.open(path)
    slot = places.acquire(numbers[0])
    for number in numbers[1:]:
        places.set(slot, number)
    places.close()
    flip(path, slot, bit)
    places = Places.open(path)
    places.reserve([slot])
    for _ in range(2):
        assert places.find(slot) in {numbers[-1], min(numbers[-2:])}  # never one that is ahead
        assert places.damaged_count == 1  # it is told once
    places.set(slot, 5)
    assert places.get(slot) == 5
    places.close()


@pytest.mark.parametrize("number", [0, 1, 41, -7, VALUE_MAX, VALUE_MIN])
def test_every_flipped_bit_of_a_place_is_found(tmp_path, number, caplog):
    places = Places.open(tmp_path / "p")
    slot = places.acquire(max(number - 1, VALUE_MIN))
    for bit in range(128):
        places.set(slot, number)
        flip(places.path, slot, bit)
        caplog.clear()
        assert places.find(slot) in {number, number - 1}
        assert places.damaged_count == bit + 1
        assert "last good number" in caplog.text
    places.close()


def test_a_place_of_which_nothing_is_known_is_zero_and_said_to_be(tmp_path, caplog):
    path = tmp_path / "p"
    places = Places.open(path)
    slot = places.acquire(3_000_000)
    places.set(slot, 3_000_007)
    flip(path, slot, 3, 64 + 9)
    assert places.find(slot) is None
    assert f"path={path} slot=0" in caplog.text
    assert "number=0" in caplog.text
    assert places.find(slot) == 0
    assert places.damaged_count == 1
    places.close()


def test_pages_that_are_lost_are_no_number(tmp_path):
    path = tmp_path / "p"
    places = Places.open(path)
    slot = places.acquire(41)
    places.close()
    path.write_bytes(path.read_bytes()[:16].ljust(65_536, b"\0"))
    places = Places.open(path)
    places.reserve([slot])
    assert places.find(slot) is None
    places.close()


def test_after_a_step_back_damage_brings_nothing_back_that_is_ahead(tmp_path):
    for bit in range(128):
        path = tmp_path / str(bit)
        places = Places.open(path)
        slot = places.acquire(0)
        for number in (50, 100, 20):
            places.set(slot, number)
        flip(path, slot, bit)
        assert places.get(slot) == 20
        places.close()


def test_what_is_filled_leaves_no_number_before_it(tmp_path):
    for bit in range(128):
        path = tmp_path / str(bit)
        places = Places.open(path)
        slot = places.acquire(0)
        places.fill(slot, 772)
        flip(path, slot, bit)
        assert places.get(slot) == 772
        places.close()


@given(st.lists(st.tuples(values, st.booleans()), max_size=30))
@settings(max_examples=20, deadline=None)
def test_a_file_of_the_version_before_becomes_one_of_this_version(tmp_path_factory, numbers):
    path = tmp_path_factory.mktemp("places") / "p"
    words = [(number & ((1 << 48) - 1)) for number, _ in numbers]
    words = [(word ^ word >> 16 ^ word >> 32) << 48 & (1 << 64) - 1 | word for word in words]
    words = [word ^ is_damaged << 17 for word, (_, is_damaged) in zip(words, numbers, strict=True)]
    path.write_bytes((OLD_HEADER + array("Q", words).tobytes()).ljust(65_536, b"\0"))
    for _ in range(2):
        places = Places.open(path)
        places.reserve(range(len(numbers) + 1))
        found = [places.find(slot) for slot in range(len(numbers))]
        assert found == [None if is_damaged else number for number, is_damaged in numbers]
        assert places.find(len(numbers)) == 0
        places.close()
        numbers = [(number if not is_damaged else 0, False) for number, is_damaged in numbers]


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
    slots = [places.acquire() for _ in range((65_536 - 16) // 16)]
    with file_size_limit(70_000):
        with pytest.raises(DiskFullError):
            places.acquire()
        places.set(slots[-1], 12)
    assert places.get(slots[-1]) == 12
    assert places.acquire() == len(slots)
    places.close()


@pytest.mark.parametrize("at", range(16))
def test_a_damaged_header_is_told_with_a_way_out_that_loses_nothing(tmp_path, at):
    path = tmp_path / "p"
    places = Places.open(path)
    places.set(places.acquire(), 77)
    places.close()
    with path.open("r+b") as file:
        header = bytearray(file.read(16))
        header[at] ^= 0x40
        file.seek(0)
        file.write(header)
    before = path.read_bytes()
    with pytest.raises(DataFolderUnusableError) as caught:
        Places.open(path)
    assert path.read_bytes() == before
    said = str(caught.value)
    assert said.startswith(f"cannot use data folder {path}: ")
    assert f"bytes 0 to 15 are {header.hex(' ')}" in said
    told = said.partition("write ")[2][: 16 * 3 - 1]
    with path.open("r+b") as file:
        file.write(bytes.fromhex(told))
    places = Places.open(path)
    places.reserve([0])
    assert places.get(0) == 77
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
