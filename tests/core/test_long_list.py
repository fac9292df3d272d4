from __future__ import annotations

import gc

import core.message
from core.long_list import make_long_list

IS_COMPILED = core.message.__file__.endswith(".so")


def test_a_long_list_is_a_list_that_is_nothing_for_the_collector_however_it_grows():
    first, more = [[number] for number in range(10)], [[number] for number in range(10_000)]
    found = make_long_list(first)
    assert found == first
    found += more
    found.append([])
    assert found == [*first, *more, []]
    del found[10:-1]
    assert found == [*first, []]
    gc.collect()
    assert gc.is_tracked(found) != IS_COMPILED


def test_what_a_long_list_lets_go_of_is_freed():
    found = make_long_list([bytearray(1)])
    view = memoryview(found[0])
    del found[:]
    view.release()
    found = make_long_list(iter(range(3)))
    assert found == [0, 1, 2]
    del found
    gc.collect()
