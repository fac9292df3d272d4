from __future__ import annotations

import gc
import weakref

import pytest

from core import refill
from core.message import PublishBatch


class Kept:
    """Something that says when it is gone."""


@pytest.mark.parametrize("count", [0, 1, 2, 50])
def test_list_is_empty_and_its_items_are_let_go_of(count):
    items = [Kept() for _ in range(count)]
    known = [weakref.ref(item) for item in items]
    refill.empty(items)
    assert items == []
    assert [one() for one in known] == [None] * count


@pytest.mark.parametrize("count", [0, 1, 2, 50])
def test_batch_fills_the_same_lists_again(count):
    """Of a compiled batch: what keeps its room is a list like any other."""
    batch = PublishBatch(1)
    topics = batch.topics
    for turn in range(3):
        assert topics == []
        topics += [b"%d/%d" % (turn, i) for i in range(count)]
        known = topics.copy()
        batch.clear()
        assert batch.topics is topics
        topics.extend(known)
        topics.sort(key=known.index)
        topics.insert(0, b"first")
        assert topics == [b"first", *known]
        del topics[:]
        gc.collect()


def test_item_that_looks_at_the_list_when_it_goes_finds_it_empty():
    batch = PublishBatch(1)
    seen = []

    class Looking:
        def __del__(self):
            seen.append(list(batch.routes))
            batch.routes.append(None)

    batch.routes.append(Looking())
    batch.clear()
    assert seen == [[]]
    assert batch.routes == [None]
