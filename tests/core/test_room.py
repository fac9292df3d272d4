from __future__ import annotations

import pytest

from core.room import Room

LEAST = 1_600


@pytest.fixture
def told():
    return []


@pytest.fixture
def room(told):
    room = Room(LEAST)
    room.watch(lambda: told.append("low"), told.append)
    return room


def _look(room, free_bytes, *, is_full=False, now_ms=0):
    return room.note(free_bytes, is_full=is_full, now_ms=now_ms)


def test_room_is_low_under_the_least_and_enough_again_a_sixteenth_above_it(room, told):
    assert not _look(room, LEAST)
    assert _look(room, LEAST - 1)
    assert room.is_low
    assert not _look(room, LEAST)
    assert not _look(room, LEAST + 99)
    assert _look(room, LEAST + 100, now_ms=7)
    assert not room.is_low
    assert told == ["low", 7]


def test_each_change_is_told_once_and_the_last_look_is_kept(room, told):
    for free_bytes in (5, 6, 7):
        _look(room, free_bytes)
    assert told == ["low"]
    assert room.free_bytes == 7


def test_refused_segment_makes_the_room_low_whatever_the_disk_says(room, told):
    assert _look(room, 10**9, is_full=True)
    assert not _look(room, 10**9, is_full=True)
    assert _look(room, 10**9, now_ms=3)
    assert told == ["low", 3]


def test_without_a_least_only_a_full_disk_counts(told):
    room = Room(0)
    room.watch(lambda: told.append("low"), told.append)
    assert not _look(room, 0)
    assert _look(room, 0, is_full=True)
    assert _look(room, 0, now_ms=9)
    assert told == ["low", 9]


def test_question_changes_nothing(room):
    assert not room.is_enough(0, is_full=False)
    assert not room.is_low
    assert room.is_enough(LEAST, is_full=False)
    assert not room.is_enough(LEAST, is_full=True)


def test_room_is_low_while_the_disk_or_the_memory_is(room, told):
    room.note_memory(is_low=True, now_ms=1)
    assert (room.is_low, room.is_disk_low) == (True, False)
    assert _look(room, 0)
    assert room.is_disk_low
    room.note_memory(is_low=False, now_ms=2)
    assert room.is_low
    assert _look(room, 10**9, now_ms=3)
    assert not room.is_low
    assert told == ["low", 3]
    room.note_memory(is_low=False, now_ms=4)
    assert told == ["low", 3]


def test_what_is_low_is_told_in_words(room):
    assert room.lack == ""
    room.note_memory(is_low=True, now_ms=1)
    assert room.lack == "memory is low"
    _look(room, 0)
    assert room.lack == "the disk is low on room"
