"""Definitions that are not kept yet."""

from __future__ import annotations

import weakref

import pytest

from core.errors import StoreClosedError
from gateway.amqp.unkept import SLICE_MAX, Unkept


@pytest.fixture
def asked():
    return []  # what is to be called when changes are kept


def test_what_is_made_is_unkept_until_the_changes_are_kept(asked):
    unkept = Unkept(asked.append, list)
    unkept.note(("q", "a"))
    assert ("q", "a") in unkept
    assert ("x", "a") not in unkept
    asked.pop()(None)
    assert ("q", "a") not in unkept


def test_what_is_made_while_the_engine_was_asked_is_asked_for_after_that_and_together(asked):
    unkept = Unkept(asked.append, list)
    for name in "abc":
        unkept.note(name)
    unkept.note("a")  # it was deleted, and made again
    assert len(asked) == 1
    asked.pop()(None)
    assert [name in unkept for name in "abc"] == [True] * 3
    assert len(asked) == 1
    asked.pop()(None)
    assert [name in unkept for name in "abc"] == [False] * 3
    assert asked == []


def test_what_is_kept_at_once_is_not_unkept():
    unkept = Unkept(lambda then: then(None), list)
    unkept.note("a")
    assert "a" not in unkept


def test_what_can_no_longer_be_kept_stays_unkept(asked):
    unkept = Unkept(asked.append, list)
    unkept.note("a")
    asked.pop()(StoreClosedError("gone"))
    assert "a" in unkept


class Key:
    """A key that can be seen to be freed."""


def test_very_many_that_are_kept_are_forgotten_in_steps(asked):
    work = []
    unkept = Unkept(asked.append, work.append)
    first = Key()
    unkept.note(first)
    keys = [Key() for _ in range(2 * SLICE_MAX + 1)]
    for key in keys:
        unkept.note(key)
    known = [weakref.ref(key) for key in keys]
    del keys, key
    asked.pop()(None)
    assert first not in unkept
    assert work == []
    asked.pop()(None)
    assert first not in unkept
    (steps,) = work
    counts = [sum(one() is not None for one in known) for _ in steps]
    assert counts == [2 * SLICE_MAX, SLICE_MAX, 0]
