from __future__ import annotations

import gc

import pytest

import core.message
from core.lmq.topic_trie import TopicNode
from core.message import DispatchSet, RefRoom, Route
from core.untracked import untrack
from gateway.amqp.publishing import Target

IS_COMPILED = core.message.__file__.endswith(".so")


def _dispatch():
    return DispatchSet([b"%LMQ%q"], [1], b"", RefRoom())


@pytest.mark.parametrize(
    "make",
    [_dispatch, lambda: Route(b"T", 0, 0, b"", _dispatch()), lambda: Target(topic=b"T"), TopicNode],
    ids=["dispatch set", "route", "target", "node of a trie"],
)
def test_what_there_are_very_many_of_is_nothing_for_the_collector(make):
    thing = make()
    untrack(thing)  # a second time does no harm
    assert gc.is_tracked(thing) != IS_COMPILED


def test_an_object_goes_when_nobody_has_it():
    before = len(gc.get_objects())
    for _ in range(1_000):
        Route(b"T", 0, 0, b"", _dispatch())
    assert len(gc.get_objects()) - before < 100
