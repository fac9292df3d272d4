"""Records of the journal of QoS 2, and what they say of a session.

Source: docs/storage-format.md, "Journal of QoS 2".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

from gateway.mqtt.inflight import EXACT_COMPLETE, EXACT_RECEIVED, EXACT_SENT, InflightWindow
from gateway.mqtt.session import NO_SLOT, Session, Subscription

NAME_PIECE_BYTES = 48  # with the 8 bytes of NAME_HEAD it fits into a journal's record, which has 64 at most

RECORD = struct.Struct(">IIqq")  # session, kind and a small number, two numbers
NAME_HEAD = struct.Struct(">II")
SMALL_MASK = 0xFFFFFF  # 24 bits; the kind has the 8 above
NAME, FORGET, TAKEN, RELEASED, SENT, RECEIVED, COMPLETE, FORGET_SLOT, RESET = range(1, 10)
NOBODY = 0  # the number of no session: TAKEN of it is a mark
STATES = {SENT: EXACT_SENT, RECEIVED: EXACT_RECEIVED, COMPLETE: EXACT_COMPLETE}
_KINDS = {state: kind for kind, state in STATES.items()}


class SentBefore:
    """A message that a process before sent: its offset, and how far it came.

    `slots` are those of the subscription that it was sent for, and of the same one as it got others: at least one.
    """

    __slots__ = ("number", "offset", "slots", "state")

    def __init__(self, number: int, slot: int, offset: int, state: int) -> None:
        self.number = number
        self.slots: tuple[int, ...] = (slot,)
        self.offset = offset
        self.state = state


class Found:
    """What the journal says of a session that is not loaded yet."""

    def __init__(self, name: bytes = b"") -> None:
        self.name = name
        self.taken: dict[int, tuple[int, int]] = {}  # packet identifier -> end of the log + 1, number in its batch
        self.sent: dict[int, SentBefore] = {}

    def note_sent(self, number: int, slot: int, offset: int) -> None:
        """Know a message as sent, or one that is known by a slot of its subscription by another one, too."""
        one = self.sent.get(number)
        if one is None or one.offset != offset:
            self.sent[number] = SentBefore(number, slot, offset, EXACT_SENT)
        else:
            one.state = EXACT_SENT
            one.slots = one.slots if slot in one.slots else (*one.slots, slot)

    def forget_slot(self, slot: int) -> None:
        """Know nothing by a slot any more."""
        for one in self.sent.values():
            one.slots = tuple(each for each in one.slots if each != slot)
        self.sent = {number: one for number, one in self.sent.items() if one.slots}


def mark_record(end: int) -> bytes:
    """Return the record that says that all that the log has before `end` was noted."""
    return RECORD.pack(NOBODY, TAKEN << 24, end + 1, 0)


def name_records(number: int, name: bytes) -> list[bytes]:
    """Return the records that say which client the session of that number is."""
    pieces = [name[start : start + NAME_PIECE_BYTES] for start in range(0, len(name), NAME_PIECE_BYTES)]
    return [NAME_HEAD.pack(number, NAME << 24) + piece for piece in pieces]


def _slot_of(session: Session, window: InflightWindow, number: int) -> int:
    """Return the slot that a message in the window is noted under: its subscription's, or that of a catch-up."""
    catch_up = (session.retained_inflight or {}).get(number)
    if catch_up is None:  # a session that has ended has no sources
        return session.floor_slot_of(window.any_source_of(number)) if session.sources else NO_SLOT
    return -1 if catch_up.is_ended else catch_up.slot


def found_changes(found: Found) -> Iterator[tuple[int, int, int]]:
    """Give the same as `sent_changes` of a session that is not loaded yet."""
    for one in found.sent.values():
        for slot in one.slots:
            yield SENT << 24 | slot, one.number, one.offset
        if one.state != EXACT_SENT:
            yield _KINDS[one.state] << 24, one.number, 0


def sent_changes(session: Session) -> Iterator[tuple[int, int, int]]:
    """Give kind with small number, number and offset of each message at QoS 2 in the window, and how far it came."""
    for subscription in session.subscriptions.values():
        if subscription.floor_slot == NO_SLOT:
            continue  # at QoS 0 by now
        yield from done_changes(subscription)
    window = session.window
    if window is None:
        return
    for number in range(window.tail, window.head):
        state = window.state_of(number)
        slot = _slot_of(session, window, number) if state else -1
        if slot >= 0:
            yield SENT << 24 | slot, number, window.offset_of(number)
            if state != EXACT_SENT:
                yield (RECEIVED if state == EXACT_RECEIVED else COMPLETE) << 24, number, 0


Changes = list[tuple[int, int, int, int]]  # kind, small number, two numbers


def done_changes(subscription: Subscription) -> Iterator[tuple[int, int, int]]:
    """Give the same as `sent_changes` of what a process before sent, which a subscription may still come to."""
    return ended_changes(subscription.session, {subscription.floor_slot: _done_of(subscription)})


def _done_of(subscription: Subscription) -> dict[int, int]:
    """Return number and queue offset of what a process before sent, under way or not."""
    return {number: offset for offset, number in (subscription.done_before or {}).items()}


def open_changes(session: Session, slot: int) -> Changes:
    """Return what says which retained messages at QoS 2 of a catch-up, by its slot, are under way."""
    window, changes = session.window, Changes()
    for number, catch_up in (session.retained_inflight or {}).items():
        state = window.state_of(number) if window is not None and catch_up.slot == slot else EXACT_COMPLETE
        if window is not None and state in {EXACT_SENT, EXACT_RECEIVED}:
            changes.append((SENT, slot, number, window.offset_of(number)))
            if state == EXACT_RECEIVED:
                changes.append((RECEIVED, 0, number, 0))
    return changes


def sent_of(subscription: Subscription) -> dict[int, int]:
    """Return number and queue offset of each message at QoS 2 that was sent for a subscription and is known still."""
    sent = _done_of(subscription)
    window = subscription.session.window
    if window is not None and window.count_of(subscription.source):
        sent.update(window.exact_of(subscription.source))
    return sent


def ended_changes(session: Session, ended: Mapping[int, Mapping[int, int]]) -> Iterator[tuple[int, int, int]]:
    """Give the same as `sent_changes` of what was sent for subscriptions that gave up their slots.

    Args:
        session: What they were of.
        ended: By slot, number and queue offset of each message, as `sent_of` said then.
    """
    window = session.window
    for slot, sent in ended.items():
        for number, offset in sent.items():
            is_there = window is not None and window.tail <= number < window.head
            state = window.state_of(number) if window is not None and is_there else EXACT_COMPLETE
            yield SENT << 24 | slot, number, offset
            if state != EXACT_SENT:
                yield _KINDS[state or EXACT_COMPLETE] << 24, number, 0
