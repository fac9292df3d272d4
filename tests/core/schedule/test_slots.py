from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from core.schedule.slots import (
    DELAY_MAX_MS,
    FAR_MS,
    NEAR_AHEAD_MS,
    NEAR_MS,
    NEAR_SLOTS,
    day_of,
    encode_due,
    find_queues,
    queue_key,
    queue_of,
    read_due,
    strip_due,
)
from tests.support.broker import make_broker
from tests.support.store import NOW_MS, light


@given(st.integers(0, DELAY_MAX_MS), st.integers(0, FAR_MS))
def test_what_is_near_waits_in_its_minute_and_the_rest_in_its_day(delay_ms, later_ms):
    now_ms = NOW_MS + later_ms
    due_ms = now_ms + delay_ms
    queue_id = queue_of(due_ms, now_ms)
    if delay_ms <= NEAR_AHEAD_MS:
        assert queue_id == due_ms // NEAR_MS % NEAR_SLOTS
    else:
        assert day_of(queue_id, now_ms) == due_ms // FAR_MS


@given(st.binary(max_size=60), st.integers(0, 10**13 - 1))
def test_when_a_message_is_due_is_read_back_and_taken_out(own, due_ms):
    text = own + encode_due(due_ms)
    for stored in (text, text + b"__CRC32#\x010123456789\x02"):
        assert read_due(stored) == due_ms
        assert strip_due(stored) == own


@pytest.mark.parametrize(
    "text", [b"", b"a\x01b\x02", b"LMQ_DUE\x01", b"LMQ_DUE\x01123\x02", b"LMQ_DUE\x01+234567890123\x02"]
)
def test_properties_that_say_no_moment_are_told_apart(text):
    assert read_due(text) == -1


@pytest.mark.parametrize("others", [3, 3_000])
def test_the_timers_queues_are_found_among_few_and_among_many(store, others):
    broker, _ = make_broker(store)
    theirs = [b"rmq_sys_wheel_timer/2560", b"rmq_sys_wheel_timer/x", b"rmq_sys_wheel_timer2/1", *light("rmq/7")]
    ours = [0, 7, NEAR_SLOTS, 2_559]
    for key in [*theirs, *map(queue_key, ours), *light(*map(str, range(others)))]:
        broker.intern_queue(key)
    assert sorted(find_queues(broker.engine)) == ours
