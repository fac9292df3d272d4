from __future__ import annotations

from core.message import StoredBatch
from core.properties import CANCEL, encode_properties
from core.schedule.near_slot import NearSlot, find_rows
from core.schedule.slots import NEAR_MS, encode_due

MINUTE = 100
START_MS = MINUTE * NEAR_MS


def give(slot, *messages, first=0):
    """Let the slot read messages: of each when it is due and its other properties."""
    found = StoredBatch(len(messages))
    found.count = len(messages)
    found.next_offset = first + len(messages)
    text = b""
    for i, (due_ms, own) in enumerate(messages):
        found.properties_start[i] = len(text)
        text += own + encode_due(due_ms)
        found.properties_end[i] = len(text)
        found.queue_offset[i] = first + i
    found.buf = text
    slot.take_in(found)


def test_what_is_due_comes_by_moment_then_by_number_and_the_rest_stays():
    slot = NearSlot(MINUTE, 0, 0, (0, 0))
    give(slot, (START_MS + 5, b""), (START_MS + 2, b""), (START_MS + 5, b""), (START_MS + 9, b""))
    assert slot.next_due_ms() == START_MS + 2
    assert slot.take_due(START_MS + 5, 2) == [(START_MS + 2, 1), (START_MS + 5, 0)]
    assert slot.take_due(START_MS + 5, 2) == [(START_MS + 5, 2)]
    assert slot.take_due(START_MS + 8, 2) == []
    assert slot.next_due_ms() == START_MS + 9


def test_rows_of_a_read_are_found_in_the_order_in_which_they_are_due_and_lost_ones_are_not():
    found = StoredBatch(4)
    found.count = 3
    for i, offset in enumerate((4, 7, 9)):
        found.queue_offset[i] = offset
    wanted = [(1, 9), (1, 5), (2, 4), (3, 7)]
    assert find_rows(found, wanted) == ([2, 0, 1], [(1, 9), (2, 4), (3, 7)])


def test_what_was_handed_on_before_is_left_out_and_what_is_overdue_is_not():
    slot = NearSlot(MINUTE, 0, 0, (START_MS + 5, 1))
    give(slot, (START_MS + 5, b""), (START_MS + 5, b""), (START_MS - 1, b""), (START_MS + 6, b""))
    assert slot.take_due(START_MS + 100, 10) == [(START_MS + 5, 1), (START_MS + 6, 3)]
    slot = NearSlot(MINUTE, 0, 0, (START_MS - 9, 0))
    give(slot, (START_MS - 1, b""))
    assert slot.take_due(START_MS, 10) == [(START_MS - 1, 0)]


def test_what_is_due_in_a_later_round_is_kept_for_it():
    slot = NearSlot(MINUTE, 0, 0, (0, 0))
    give(slot, (START_MS, b""), (START_MS + 2_048 * NEAR_MS, b""), (START_MS + 1, b""))
    assert slot.keep_from == 1
    assert slot.scanned_until == 3
    assert len(slot.take_due(START_MS + NEAR_MS, 10)) == 2


def test_a_message_is_taken_back_by_its_topic_and_key():
    slot = NearSlot(MINUTE, 0, 0, (0, 0))
    message = encode_properties([(b"REAL_TOPIC", b"T"), (b"UNIQ_KEY", b"k")])
    assert not slot.is_cancelled(message)
    give(slot, (START_MS, encode_properties([(b"REAL_TOPIC", b"U"), (CANCEL, b"T+k")])))
    assert not slot.is_cancelled(message)
    give(slot, (START_MS, encode_properties([(b"REAL_TOPIC", b"T"), (CANCEL, b"T+k")])), first=1)
    assert slot.is_cancelled(message)
    assert slot.take_due(START_MS, 10) == []
