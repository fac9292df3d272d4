from __future__ import annotations

import struct
from array import array

import pytest
from hypothesis import given, settings, strategies as st

from gateway.amqp.unacked import ACK, DROP, LATE_FROM, REQUEUE, UnackedRing
from tests.support import amqp

ACK_INDEX, NACK_INDEX, REJECT_INDEX = 0x3C0050, 0x3C0078, 0x3C005A


def settle_frame(index, tag, bits=0, channel=1):
    return struct.pack(">BHIIQBB", 1, channel, 13, index, tag, bits, 0xCE)


def push(ring, count, slot=0, first_offset=100):
    ring.take_slot(slot, False)
    return ring.push(amqp.stored([({}, b"")] * count, first_offset=first_offset), slot)


def settled(ring):
    return [(ring.settled_slot[i], ring.settled_offset[i], ring.settled_kind[i]) for i in range(ring.settled_count)]


def run(ring, data):
    end = ring.cut_settles(data, 0, len(data), 1)
    return end, settled(ring), ring.unknown_in


def test_acks_settle_the_offsets_of_their_tags():
    ring = UnackedRing()
    assert push(ring, 3) == 1
    assert push(ring, 2, slot=1, first_offset=7) == 4
    data = settle_frame(ACK_INDEX, 2) + settle_frame(ACK_INDEX, 4)
    assert run(ring, data) == (42, [(0, 101, ACK), (1, 7, ACK)], 0)
    assert list(ring.in_flight[:2]) == [2, 1]
    assert ring.live == 3


def test_multiple_settles_all_up_to_the_tag():
    ring = UnackedRing()
    push(ring, 5)
    run(ring, settle_frame(ACK_INDEX, 2))
    assert run(ring, settle_frame(ACK_INDEX, 4, 1))[1] == [(0, 100, ACK), (0, 102, ACK), (0, 103, ACK)]
    assert run(ring, settle_frame(ACK_INDEX, 0, 1))[1] == [(0, 104, ACK)]
    assert run(ring, settle_frame(ACK_INDEX, 0, 1))[1:] == ([], 0)
    assert (ring.live, ring.first_tag, ring.next_tag) == (0, 6, 6)


def test_a_ring_remembers_what_was_done_last_by_the_slot_that_had_it():
    ring = UnackedRing()
    push(ring, 3)
    push(ring, 2, slot=1, first_offset=200)
    run(ring, settle_frame(ACK_INDEX, 1) + settle_frame(NACK_INDEX, 2, 2) + settle_frame(REJECT_INDEX, 4))
    found = {(slot, offset) for slot in (0, 1) for offset in range(300) if ring.has_settled(slot, offset, 1)}
    assert found == {(0, 100), (1, 200)}  # what was given back is not done, what is unacknowledged neither
    assert not ring.has_settled(0, 100, from_tag=2)
    ring.settle_oldest(1 << 40, ACK)
    assert ring.has_settled(0, 102, 1)
    ring.skip(4)
    assert not any(ring.has_settled(slot, offset, 1) for slot in (0, 1) for offset in range(300))


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 2), st.sampled_from([ACK, DROP, REQUEUE]), st.booleans())))
def test_what_a_ring_remembers_is_true(rounds):
    ring, done, offset, slots = UnackedRing(), set(), 0, {}
    for count, slot, kind, is_skipped in rounds:
        if is_skipped:
            ring.skip(count)
            continue
        push(ring, count, slot, offset)
        slots.update(dict.fromkeys(range(offset, offset + count), slot))
        for tag in range(ring.next_tag - count, ring.next_tag, 2):
            ring.settle(tag, kind, multiple=False)
            if kind != REQUEUE:
                done.add(offset + tag - (ring.next_tag - count))
        offset += count
    assert all(
        each in done and slots[each] == slot
        for slot in range(3)
        for each in range(offset)
        if ring.has_settled(slot, each, 1)
    )


def test_nack_and_reject_requeue_or_drop():
    ring = UnackedRing()
    push(ring, 5)
    data = b"".join(
        [
            settle_frame(NACK_INDEX, 1, 2),
            settle_frame(NACK_INDEX, 2, 0),
            settle_frame(REJECT_INDEX, 4, 1),
            settle_frame(REJECT_INDEX, 5, 0),
        ]
    )
    assert [kind for _, _, kind in run(ring, data)[1]] == [REQUEUE, DROP, REQUEUE, DROP]
    assert not ring.is_uniform()
    into = array("q", bytes(32))
    assert ring.collect(0, REQUEUE, into) == 2
    assert list(into[:2]) == [100, 103]
    assert ring.settled_slots() == [(0, REQUEUE), (0, DROP)]


@pytest.mark.parametrize(
    "frame",
    [
        settle_frame(ACK_INDEX, 9),
        settle_frame(ACK_INDEX, 0),
        settle_frame(ACK_INDEX, 1),
        settle_frame(ACK_INDEX, 9, 1),
        settle_frame(ACK_INDEX, 2**63 + 5),
        settle_frame(ACK_INDEX, 2**63),
    ],
)
def test_a_tag_that_is_not_unacknowledged_ends_the_run(frame):
    ring = UnackedRing()
    push(ring, 3)
    first = settle_frame(ACK_INDEX, 1)
    end, found, unknown = run(ring, first + frame + settle_frame(ACK_INDEX, 2))
    assert end == 42
    assert found == [(0, 100, ACK)]
    assert unknown == ACK_INDEX
    assert ring.live == 2


def test_other_frames_end_the_run():
    ring = UnackedRing()
    push(ring, 3)
    one = settle_frame(ACK_INDEX, 1)
    for other in (settle_frame(ACK_INDEX, 2, channel=2), amqp.publish(1, b"x"), one[:-1] + b"\x00", one[:-1], b""):
        ring = UnackedRing()
        push(ring, 3)
        assert run(ring, one + other)[0] == len(one)


def test_tags_without_acknowledgement_are_never_live():
    ring = UnackedRing()
    assert ring.skip(3) == 1
    assert push(ring, 1) == 4
    assert ring.skip(2) == 5
    assert not ring.settle(2, ACK, multiple=False)
    assert not ring.settle(5, ACK, multiple=False)
    assert ring.settle(4, ACK, multiple=False)
    assert ring.live == 0
    assert push(ring, 1) == 7


def test_a_tag_that_stays_does_not_make_the_ring_grow():
    ring = UnackedRing()
    push(ring, 1, first_offset=7)
    for _ in range(300):
        first = push(ring, 100)
        for tag in range(first, first + 100):
            assert ring.settle(tag, ACK, multiple=False)
    assert ring.room <= 4_096
    assert ring.live == 1
    assert ring.settle(1, REQUEUE, multiple=False)
    assert settled(ring) == [(0, 7, REQUEUE)]


def test_hoarded_tags_cost_a_place_in_the_ring_each():
    ring = UnackedRing()
    for i in range(10):
        push(ring, 1_000, first_offset=1_000 * i)
    assert (ring.live, ring.room) == (10_000, 16_384)
    assert ring.oldest_tag() == 1
    assert settled(ring) == []


@pytest.mark.parametrize("count", [1, 3, 64, 10_000])
def test_everything_is_settled_some_at_a_time_and_oldest_first(count):
    ring = UnackedRing()
    push(ring, 1, first_offset=7)
    for _ in range(30):
        first = push(ring, 100)
        for tag in range(first, first + 100):
            ring.settle(tag, ACK, multiple=False)
    ring.skip(5)
    push(ring, 200, first_offset=1_000)
    for tag in range(ring.first_tag + 10, ring.first_tag + 150):
        ring.settle(tag, ACK, multiple=False)
    ring.skip(5)
    push(ring, 2, slot=1, first_offset=5_000)
    live, found = ring.live, []
    while ring.live:
        before = ring.live
        ring.settle_oldest(count, REQUEUE)
        assert 0 < before - ring.live <= count + 2  # and what was late
        found += settled(ring)
    expected = [7, *range(1_000, 1_010), *range(1_150, 1_200), 5_000, 5_001]
    assert [(offset, kind) for _, offset, kind in found] == [(offset, REQUEUE) for offset in expected]
    assert (live, list(ring.in_flight[:2])) == (len(expected), [0, 0])
    ring.settle_oldest(count, REQUEUE)
    assert settled(ring) == []


def test_what_is_settled_at_once_is_everything_oldest_first():
    ring = UnackedRing()
    push(ring, 1, first_offset=7)
    for _ in range(30):
        first = push(ring, 100)
        for tag in range(first, first + 100):
            ring.settle(tag, ACK, multiple=False)
    push(ring, 2)
    ring.settle_oldest(1 << 40, REQUEUE)
    assert settled(ring) == [(0, 7, REQUEUE), (0, 100, REQUEUE), (0, 101, REQUEUE)]
    assert ring.live == 0


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 400), st.booleans()), max_size=120))
@settings(max_examples=60, deadline=None)
def test_the_ring_does_what_a_dict_would(steps):
    ring = UnackedRing()
    model: dict[int, tuple[int, int]] = {}
    offset = 0
    for what, number, flag in steps:
        if what == 0:
            count = number % 200 + 1
            first = push(ring, count, slot=number % 3, first_offset=offset)
            model |= {first + i: (number % 3, offset + i) for i in range(count)}
            offset += count
        elif what == 1:
            ring.skip(number % 5)
        else:
            tag = ring.next_tag - 1 - number if number % 2 else number
            is_known = tag in model
            assert ring.settle(tag, ACK, multiple=flag) == (is_known or (tag == 0 and flag))
            gone = (
                [t for t in sorted(model) if (flag and (t <= tag or tag == 0)) or t == tag]
                if is_known or tag == 0
                else []
            )
            if is_known or flag:
                assert [(slot, at) for slot, at, _ in settled(ring)] == [model.pop(t) for t in gone]
        assert ring.live == len(model)
    assert [ring.in_flight[i] for i in range(3)] == [sum(slot == i for slot, _ in model.values()) for i in range(3)]


def test_the_oldest_tag_is_found_whether_in_the_ring_or_in_the_map():
    ring = UnackedRing()
    push(ring, 3, slot=5)
    ring.settle(1, ACK, multiple=False)
    assert (ring.oldest_tag(), ring.slot_of(2)) == (2, 5)
    for _ in range(LATE_FROM):
        push(ring, 3, slot=1)
        for tag in range(ring.next_tag - 3, ring.next_tag):
            ring.settle(tag, ACK, multiple=False)
    assert (ring.oldest_tag(), ring.slot_of(2)) == (2, 5)


def test_what_a_slot_holds_is_known_until_it_is_settled():
    ring = UnackedRing()
    push(ring, 2)
    push(ring, 1, slot=1, first_offset=7)
    assert (ring.holds(0, 101), ring.holds(1, 101), ring.holds(1, 7)) == (True, False, True)
    run(ring, settle_frame(ACK_INDEX, 2))
    assert not ring.holds(0, 101)
    for first in range(0, 2 * LATE_FROM, 64):
        push(ring, 64, first_offset=1_000 + first)
        ring.cut_settles(settle_frame(ACK_INDEX, ring.next_tag - 1, 0), 0, 21, 1)
    assert ring.holds(0, 100)
    assert ring.holds(1, 7)
