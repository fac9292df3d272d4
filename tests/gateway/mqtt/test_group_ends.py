"""Ends of groups, until they are durable."""

from __future__ import annotations

import pytest

from core.errors import StoreClosedError
from gateway.mqtt.group_ends import GroupEnds

FILTER, KEY = b"$share/g/t", (b"g", b"t")


@pytest.fixture
def kept():
    return []  # what is to be called when changes are kept


@pytest.mark.parametrize("error", [None, StoreClosedError("gone")])
def test_those_that_wait_for_an_end_are_told_when_it_is_durable_or_can_no_longer_be(kept, error):
    ends, told = GroupEnds(kept.append), []
    ends.watch(KEY)
    assert not ends.is_awaited(FILTER)
    ends.note(KEY)
    assert ends.is_awaited(FILTER)
    for _ in range(2):
        ends.tell(FILTER, told.append)
    assert told == []
    kept.pop()(error)
    assert told == [error, error]
    assert not ends.is_awaited(FILTER)


def test_group_without_durable_sessions_ends_at_once(kept):
    ends = GroupEnds(kept.append)
    ends.note(KEY)
    assert (kept, ends.is_awaited(FILTER)) == ([], False)


def test_each_group_is_known_by_name_and_filter(kept):
    ends = GroupEnds(kept.append)
    ends.watch(KEY)
    ends.note(KEY)
    assert not ends.is_awaited(b"$share/h/t")
    assert not ends.is_awaited(b"$share/g/u")
