"""Anonymous memory that grows."""

from __future__ import annotations

import mmap

from core.store.arena import HUGE_FROM_BYTES, Arena


def test_memory_is_zeroed_and_has_whole_pages():
    arena = Arena(1)
    assert arena.size == mmap.PAGESIZE
    assert arena.octets() == bytes(mmap.PAGESIZE)
    assert (len(arena.ints()), len(arena.longs())) == (mmap.PAGESIZE // 4, mmap.PAGESIZE // 8)


def test_the_views_are_of_the_same_bytes():
    arena = Arena(100)
    arena.longs()[1] = -1
    assert list(arena.ints()[:4]) == [0, 0, -1, -1]
    assert bytes(arena.octets()[8:16]) == b"\xff" * 8


def test_growing_keeps_the_content():
    arena = Arena(100)
    arena.ints()[7] = 42
    for size in (1, 5_000, 3 * HUGE_FROM_BYTES):
        before = arena.size
        arena.grow(size)
        assert arena.size >= max(size, 2 * before)
        assert arena.ints()[7] == 42
        assert arena.octets()[arena.size - 1] == 0


def test_growing_under_a_view_leaves_the_view_alone():
    arena = Arena(100)
    view = arena.ints()
    view[0] = 1
    arena.grow(5_000)
    view[0] = 2
    assert arena.ints()[0] == 1
    assert view[0] == 2
