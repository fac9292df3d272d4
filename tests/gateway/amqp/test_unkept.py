"""Definitions that are not kept yet."""

from __future__ import annotations

import pytest

from core.errors import StoreClosedError
from gateway.amqp.unkept import Unkept


@pytest.fixture
def asked():
    return []  # what is to be called when changes are kept


def test_what_is_made_is_unkept_until_the_changes_are_kept(asked):
    unkept = Unkept(asked.append)
    unkept.note(("q", "a"))
    assert ("q", "a") in unkept
    assert ("x", "a") not in unkept
    asked.pop()(None)
    assert ("q", "a") not in unkept


def test_what_is_made_while_the_engine_was_asked_is_asked_for_after_that_and_together(asked):
    unkept = Unkept(asked.append)
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
    unkept = Unkept(lambda then: then(None))
    unkept.note("a")
    assert "a" not in unkept


def test_what_can_no_longer_be_kept_stays_unkept(asked):
    unkept = Unkept(asked.append)
    unkept.note("a")
    asked.pop()(StoreClosedError("gone"))
    assert "a" in unkept
