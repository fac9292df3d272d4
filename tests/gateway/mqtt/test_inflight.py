from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from core.message import FLAG_MARK, StoredBatch
from gateway.mqtt.columns import RunColumns
from gateway.mqtt.inflight import EXACT_RECEIVED, EXACT_SENT, ID_COUNT, SPAN_MIN, WINDOW_MAX, InflightWindow


def make(window_max=8, sources=2):
    window = InflightWindow(window_max)
    for source in range(sources):
        window.add_source(source)
    return window


def batch_of(offsets, flag=FLAG_MARK | 1):
    batch = StoredBatch(max(len(offsets), 1))
    batch.count = len(offsets)
    for i, offset in enumerate(offsets):
        batch.queue_offset[i] = offset
        batch.flag[i] = flag
    return batch


def ack(window, *packet_ids):
    columns = RunColumns(max(len(packet_ids), 1))
    columns.ack_count = len(packet_ids)
    for i, packet_id in enumerate(packet_ids):
        columns.packet_ids[i] = packet_id
    return window.acknowledge(columns)


def touched(window):
    return sorted(window.touched_source(i) for i in range(window.touched_count))


def test_identifiers_follow_the_order_of_sending():
    window = make()
    assert window.next_id() == 1
    window.push(batch_of([10, 11]), 0)
    assert window.next_id() == 3
    assert window.room() == 6


def test_more_than_may_be_in_flight_is_sent_again_in_parts():
    window = make(4)
    window.push(batch_of([10, 11, 12, 13]), 1)
    window.window_max = 2
    assert [window.room_at(number) for number in range(4)] == [2, 1, 0, -1]
    ack(window, 2)
    assert [window.room_at(number) for number in (0, 2, 3)] == [2, 1, 0]
    ack(window, 1)
    assert window.room_at(3) == 2


def test_acknowledged_in_order_moves_the_floor():
    window = make()
    window.push(batch_of([10, 11, 12]), 1)
    assert ack(window, 1, 2) == 2
    assert touched(window) == [1]
    assert (window.floor_of(1), window.count_of(1), window.tail) == (12, 1, 2)


def test_acknowledged_out_of_order_waits_for_the_older_one():
    window = make()
    window.push(batch_of([10, 11, 12]), 0)
    assert ack(window, 2, 3) == 2
    assert (window.touched_count, window.room(), window.tail) == (0, 7, 0)
    assert ack(window, 1) == 1
    assert (window.floor_of(0), window.count_of(0), window.room()) == (13, 0, 8)


def test_unknown_and_repeated_identifiers_are_ignored():
    window = make()
    window.push(batch_of([10, 11]), 0)
    assert ack(window, 3, 65535, 2, 2) == 1
    assert ack(window, 2) == 0
    assert window.tail == 0


def test_only_messages_at_qos_1_are_in_flight():
    window = make()
    batch = batch_of([1, 2, 3])
    batch.flag[1] = FLAG_MARK
    batch.flag[2] = 0
    assert window.push(batch, 0) == 2
    assert [window.offset_of(0), window.offset_of(1)] == [1, 3]


def test_each_source_has_its_own_floor():
    window = make()
    window.push(batch_of([10]), 0)
    window.push(batch_of([70, 71]), 1)
    window.push(batch_of([11]), 0)
    assert ack(window, 1, 2, 3, 4) == 4
    assert touched(window) == [0, 1]
    assert (window.floor_of(0), window.floor_of(1)) == (12, 72)


def test_sources_may_come_later():
    window = make(sources=1)
    window.push(batch_of([10]), 0)
    for source in range(1, 40):
        window.add_source(source)
        window.push_one(source, source)
        ack(window, source + 1)
    assert window.count_of(0) == 1
    ack(window, 1)
    assert touched(window) == list(range(40))


def test_dropped_message_leaves_like_an_acknowledged_one():
    window = make()
    window.push(batch_of([10, 11]), 0)
    window.drop(0)
    assert (window.tail, window.floor_of(0)) == (1, 11)


def test_released_message_is_acknowledged_by_its_last_step_alone():
    window = make()
    number = window.push_one(0, 10, EXACT_SENT)
    window.release(number)
    assert (window.state_of(number), window.next_unacked(number)) == (EXACT_RECEIVED, number)
    window.drop(number)
    assert window.tail == window.head


def test_messages_at_qos_1_of_a_source_are_told_until_they_are_acknowledged():
    window = make()
    window.push(batch_of([5, 6, 7]), 1)
    window.push_one(1, 8, EXACT_SENT)
    window.push_one(0, 9)
    ack(window, 2)
    assert (window.once_of(1), window.once_of(0)) == ([5, 7], [9])


def test_what_is_to_be_sent_again_comes_in_runs_of_one_queue():
    window = make(window_max=16)
    window.push(batch_of([10, 11, 12, 14]), 0)
    window.push(batch_of([15, 16]), 1)
    ack(window, 2)
    first = window.next_unacked(0)
    assert (first, window.run_length(first, 9)) == (0, 1)
    second = window.next_unacked(1)
    assert (second, window.run_length(second, 9)) == (2, 1)
    assert window.run_length(3, 9) == 1
    assert window.run_length(4, 9) == 2
    assert window.run_length(4, 1) == 1
    assert window.next_unacked(6) == window.head
    assert window.source_of(4) == 1


def test_ring_grows_and_shrinks_with_what_is_in_flight():
    window = make(window_max=1000)
    window.push(batch_of(list(range(1000))), 0)
    assert window.room() == 0
    ack(window, *range(1, 991))
    window.shrink()
    assert [window.offset_of(number) for number in range(990, 1000)] == list(range(990, 1000))
    window.push(batch_of(list(range(1000, 1500))), 0)
    assert window.offset_of(1499) == 1499


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_window_agrees_with_a_plain_model_over_the_turn_of_identifiers(data):
    window = make(window_max=50)
    window.head = window.tail = data.draw(st.integers(ID_COUNT - 100, ID_COUNT + 5))
    model = {}  # identifier -> offset, in the order of sending
    offset = 0
    for _ in range(30):
        count = data.draw(st.integers(0, window.room()))
        for _ in range(count):
            model[window.next_id()] = offset
            window.push_one(0, offset)
            offset += 1
        acks = data.draw(st.lists(st.sampled_from(sorted(model) or [9]), max_size=60))
        assert ack(window, *acks) == len(set(acks) & set(model))
        for packet_id in acks:
            model.pop(packet_id, None)
        numbers = range(window.tail, window.head)
        unacked = [number for number in numbers if window.next_unacked(number) == number]
        assert sorted(window.offset_of(number) for number in unacked) == sorted(model.values())
        assert window.room() == 50 - len(model)
        middle = (window.tail + window.head) // 2
        assert window.unacked_before(middle) == sum(number < middle for number in unacked)
        assert window.room_at(middle) == window.window_max  # no more than that are in it
        assert [number % ID_COUNT + 1 for number in unacked] == list(model)


@pytest.mark.parametrize(
    ("window_max", "span_max"), [(2, SPAN_MIN), (2_000, SPAN_MIN), (3_000, 6_000), (20_000, WINDOW_MAX)]
)
def test_what_the_oldest_message_keeps_in_the_ring_has_a_bound(window_max, span_max):
    window = make(window_max=window_max)
    window.push_one(0, 0)
    while window.room():
        window.push_one(0, window.head)
        ack(window, window.head % ID_COUNT)
    assert window.head - window.tail == span_max
    ack(window, 1)
    assert (window.tail, window.done_count, window.room()) == (window.head, 0, window_max)


@pytest.mark.parametrize("window_max", [1, 2, 16, 17])
def test_window_never_takes_more_than_it_may(window_max):
    window = make(window_max=window_max)
    window.push(batch_of(list(range(window_max))), 0)
    assert window.room() == 0
    ack(window, 1)
    assert window.room() == 1
