from __future__ import annotations

import pytest

from core.lmq.awaited_queues import AwaitedQueues
from tests.support.broker import CountingReader


@pytest.fixture
def names():
    return [b"there"]


@pytest.fixture
def awaited(names):
    return AwaitedQueues(lambda: len(names), names.__getitem__)


def test_readers_are_given_once_when_their_queue_is_made(awaited, names):
    one, two, other = (CountingReader() for _ in range(3))
    for key, reader in ((b"a", one), (b"a", two), (b"b", other)):
        awaited.add(key, reader)
    assert awaited.take_made() == {}
    names += [b"x", b"a"]
    assert list(awaited.take_made().values()) == [one, two]
    assert awaited.take_made() == {}
    assert len(awaited) == 1


def test_who_does_not_wait_any_more_leaves_nothing(awaited, names):
    reader = CountingReader()
    awaited.add(b"a", reader)
    awaited.discard(b"a", reader)
    awaited.discard(b"a", reader)
    assert len(awaited) == 0
    names.append(b"a")
    awaited.add(b"b", reader)
    names.append(b"b")
    assert list(awaited.take_made().values()) == [reader]
