from __future__ import annotations

import random

import pytest
from hypothesis import given, strategies as st

from core.message import PublishBatch
from core.properties import encode_properties
from gateway.telemetry.choosing import BATCH_MAX, Choice

SAMPLED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
NOT_SAMPLED = SAMPLED[:-1] + "0"


def batch_of(*properties):
    """Return a batch whose messages have these properties."""
    batch = PublishBatch(max(len(properties), 1))
    extra = b""
    for i, pairs in enumerate(properties):
        batch.extra_start[i] = len(extra)
        extra += encode_properties([(name.encode(), value.encode()) for name, value in pairs])
        batch.extra_end[i] = len(extra)
    batch.extra, batch.count = extra, len(properties)
    return batch


def test_a_publisher_that_sampled_decides_and_its_state_comes_along():
    parent, state = ("traceparent", SAMPLED), ("tracestate", "vendor=1")
    batch = batch_of(
        [], [("a", "b"), parent], [parent, state], [("traceparent", NOT_SAMPLED)], [("xtraceparent", SAMPLED)]
    )
    assert Choice(0).choose(batch) == {1: (SAMPLED, ""), 2: (SAMPLED, "vendor=1")}
    assert sorted(Choice(1).choose(batch)) == [0, 1, 2, 4]


@pytest.mark.parametrize("ratio", [0.01, 0.3])
def test_of_others_so_many_are_chosen_whatever_batches_they_come_in(ratio):
    choice = Choice(ratio, random.Random(3))
    sizes = random.Random(4)
    total = chosen = 0
    while total < 20_000:
        batch = batch_of(*[[]] * sizes.randrange(1, 40))
        chosen += len(choice.choose(batch))
        total += batch.count
    assert chosen == pytest.approx(total * ratio, rel=0.2)


def test_a_batch_has_so_many_at_most():
    parents = batch_of(*[[("traceparent", SAMPLED)]] * (BATCH_MAX + 9))
    assert len(Choice(1).choose(parents)) == BATCH_MAX
    assert len(Choice(1).choose(batch_of(*[[]] * (BATCH_MAX + 9)))) == BATCH_MAX


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00\x01\x02"), max_size=60)
NAME = st.sampled_from(["traceparent", "tracestate", "x", "traceparent2"])


@given(st.lists(st.lists(st.tuples(NAME, TEXT | st.just(SAMPLED)), max_size=3), max_size=5))
def test_whatever_a_publisher_says_breaks_nothing(messages):
    for i, (parent, _) in Choice(0).choose(batch_of(*messages)).items():
        assert ("traceparent", parent) in messages[i]
