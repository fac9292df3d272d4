"""How far durable sessions are with the retained messages that they asked for, so that a killed gateway goes on there.

A SUBSCRIBE at QoS 1 is owed the retained messages that match and were stored before it. They are sent in the order of
their versions, so one number, the cursor, parts what was sent from what is still to be sent; and each that is in flight
is noted by its version, which stays what it is when the message is replaced or cleared. What holds:

- A message is noted before it is sent, and until everything sent before it is acknowledged.
- What is still to be sent is looked up when its turn comes: only a message that is still the newest of its topic is
  sent from the cursor on.
- What was in flight is sent again before anything of the queues. A newer message of the topic that the session was
  sent left after it, so it is not done either: it comes again too, later. The old one never is the last.
- A session that owes nothing has no record in the journal, and no message that comes by a queue writes one.

Source: docs/storage-format.md, "Journal of retained messages".
"""

from __future__ import annotations

import heapq
import struct
from array import array
from collections import deque
from collections.abc import Collection, Sequence
from typing import Protocol

from core.errors import DataFolderUnusableError
from core.record_journal import RecordJournal
from gateway.mqtt.kept_records import KeptRecords

RUN_MAX = 4_096  # versions that are sorted in one go: half a millisecond
COMPACT_BYTES_MIN = 1 << 20  # some 50,000 messages sent

_RECORD = struct.Struct(">IIQ")  # kind, slot, value
SENT = 1  # in flight, and the cursor is after it: its version
CURSOR = 2  # the cursor: a version
DONE = 3  # so many, the oldest, are not in flight any more
END = 4  # nothing is owed; what was said before is void


class UntilPlaces(Protocol):
    """Numbers that survive a killed process."""

    def get(self, slot: int) -> int:
        """Return the number of a slot."""

    def set(self, slot: int, value: int) -> None:
        """Set the number of a slot."""

    def fill(self, slot: int, value: int) -> None:
        """Set the number of a slot so that damage brings none before it back."""


class Ahead:
    """Versions in ascending order, of runs that were sorted one by one: they are merged as they are asked for.

    To sort a million at once would hold up everybody else for half a second.
    """

    __slots__ = ("_merged", "_next")

    def __init__(self, runs: Sequence[array[int]]) -> None:
        self._merged = heapq.merge(*runs)
        self._next = next(self._merged, -1)

    def __bool__(self) -> bool:
        """Return whether there are any left."""
        return self._next >= 0

    def pop(self) -> int:
        """Take the lowest; there is one."""
        version, self._next = self._next, next(self._merged, -1)
        return version


class CatchUp:
    """What one durable subscription is owed: what is in flight, and what was stored in [`cursor`, `until`).

    `in_flight` are versions, in the order of sending. `ahead` are those still to be sent, the next last, or
    None until the first look; it stays while the session is away, so that a connection costs only what it is
    sent. `round` counts the SUBSCRIBEs that began anew.
    """

    __slots__ = ("ahead", "cursor", "in_flight", "is_ended", "is_noted", "round", "slot", "topic_filter", "until")

    def __init__(self, slot: int, topic_filter: bytes, until: int) -> None:
        self.slot = slot
        self.topic_filter = topic_filter
        self.until = until
        self.cursor = 0
        self.in_flight: deque[int] = deque()
        self.ahead: Ahead | None = None
        self.round = 0
        self.is_noted = False  # the journal has records of it
        self.is_ended = False

    @property
    def is_over(self) -> bool:
        """Whether everything was sent and acknowledged."""
        return self.cursor >= self.until and not self.in_flight

    def stop(self) -> None:
        """Have nothing more sent; what is owed is known until `CatchUps.end`."""
        self.round += 1
        self.ahead = None


class CatchUps:
    """The catch-ups of all durable sessions, in one journal; their ends are in slots, 0 where nothing is owed.

    On a full disk no retained message is sent to a durable session. What could not be written of acknowledgements
    is written later, with all else; a crash before that makes those messages come once more.

    Args:
        journal: Where the records go.
        places: Holds the end of each catch-up, in the slot of its subscription.
    """

    def __init__(self, journal: RecordJournal, places: UntilPlaces) -> None:
        self._journal = journal
        self._places = places
        self._noted: dict[int, CatchUp] = {}  # by slot
        self._found: dict[int, CatchUp] = {}  # in the journal at the start, of sessions that are not loaded yet
        self._is_changed = False  # at the start
        self._kept = KeptRecords(
            journal,
            record_bytes=_RECORD.size,
            compact_bytes_min=COMPACT_BYTES_MIN,
            what="what is owed of retained messages",
            keys=lambda: [*self._noted.values(), *self._found.values()],
            copy=self._copy,
        )

    # The start

    def load(self, owed: Collection[int], next_version: int) -> None:
        """Read the journal, and let go of what is not owed any more; followed by `finish_load`.

        Messages are in flight in their order, as often as they were sent. A machine that failed may have lost the
        newest, from `next_version` on: they are left out.

        Args:
            owed: The slots that have an end.
            next_version: Above the versions of all retained messages.

        Raises:
            DataFolderUnusableError: It holds a record that no journal of retained messages has.
        """
        for record in self._journal.replay():
            if len(record) != _RECORD.size:
                reason = f"no journal of retained messages: it has a record of {len(record)} bytes"
                raise DataFolderUnusableError(str(self._journal.path), reason)
            kind, slot, value = _RECORD.unpack(record)
            if kind == END:
                self._found.pop(slot, None)
                continue
            found = self._found.get(slot)
            if found is None:
                found = self._found[slot] = CatchUp(slot, b"", 0)
            if kind == SENT:
                found.in_flight.append(value)
                found.cursor = value + 1
            elif kind == CURSOR:
                found.cursor = value
            elif kind == DONE:
                for _ in range(min(value, len(found.in_flight))):
                    found.in_flight.popleft()
        for slot in owed:
            if self._places.get(slot) > next_version:
                self._places.fill(slot, next_version)
        self._is_changed = bool(self._found)
        self._found = {slot: found for slot, found in self._found.items() if slot in owed}
        for found in self._found.values():
            found.cursor = min(found.cursor, next_version)
            found.in_flight = deque(sorted(version for version in found.in_flight if version < next_version))

    def found_in_flight(self, slot: int) -> deque[int]:
        """Return what the journal said is in flight of a catch-up, to be changed before `finish_load`."""
        found = self._found.get(slot)
        return deque() if found is None else found.in_flight

    def finish_load(self) -> None:
        """Write down what is left."""
        if self._is_changed:
            self._kept.rewrite()

    def take_back(self, slot: int, topic_filter: bytes, until: int) -> CatchUp:
        """Return the catch-up of a subscription as a process before left it, to go on with."""
        catch_up = self._found.pop(slot, None)
        if catch_up is None:
            return self.begin(slot, topic_filter, until)
        catch_up.topic_filter, catch_up.until, catch_up.is_noted = topic_filter, until, True
        self._noted[slot] = catch_up
        return catch_up

    def look(self, slot: int, topic_filter: bytes, until: int) -> CatchUp:
        """Return what `take_back` would, to be looked at."""
        catch_up = CatchUp(slot, topic_filter, until)
        found = self._found.get(slot)
        if found is not None:
            catch_up.cursor, catch_up.in_flight = found.cursor, found.in_flight.copy()
        return catch_up

    def note_order(self, catch_up: CatchUp, before: deque[int]) -> None:
        """Write down that those in flight leave in another order than they were noted in, or are fewer.

        They are noted again, each with the cursor as it is, before those of before are done: whatever is lost of that
        makes messages come once more.
        """
        after, cursor = catch_up.in_flight, _RECORD.pack(CURSOR, catch_up.slot, catch_up.cursor)
        if after != before:
            records = [_RECORD.pack(SENT, catch_up.slot, version) + cursor for version in after]
            records.append(_RECORD.pack(DONE, catch_up.slot, len(before)))
            catch_up.in_flight = before  # what is copied first is of before
            self._kept.write(b"".join(records))
            catch_up.in_flight = after

    # What happens

    def begin(self, slot: int, topic_filter: bytes, until: int) -> CatchUp:
        """Return the catch-up of a subscription that was owed nothing, with what was stored before `until`."""
        self._places.fill(slot, until)
        return CatchUp(slot, topic_filter, until)

    def restart(self, catch_up: CatchUp, until: int) -> None:
        """Send all again, up to `until`; what is in flight stays so."""
        if catch_up.is_noted:
            self._write(CURSOR, catch_up, 0)
        catch_up.cursor = 0
        catch_up.ahead = None
        catch_up.round += 1
        catch_up.until = until
        self._places.fill(catch_up.slot, until)

    def note_sent(self, catch_up: CatchUp, version: int, *, is_in_flight: bool) -> bool:
        """Note that a message is about to be sent; False where that cannot be written."""
        if not self._write(SENT if is_in_flight else CURSOR, catch_up, version if is_in_flight else version + 1):
            catch_up.ahead = None  # it is looked for again
            return False
        if is_in_flight:
            catch_up.in_flight.append(version)
        catch_up.cursor = version + 1
        return True

    def note_done(self, catch_up: CatchUp, count: int) -> None:
        """Note that the `count` oldest are not in flight any more; harmless after the end."""
        if not catch_up.is_ended:
            self._write(DONE, catch_up, count)
            for _ in range(count):
                catch_up.in_flight.popleft()

    def finish(self, catch_up: CatchUp) -> None:
        """Owe nothing but what is in flight."""
        if catch_up.cursor < catch_up.until and not catch_up.is_ended:
            if catch_up.is_noted:
                self._write(CURSOR, catch_up, catch_up.until)
            catch_up.cursor = catch_up.until

    def end(self, catch_up: CatchUp) -> None:
        """Forget a catch-up: nothing is owed."""
        self._places.set(catch_up.slot, 0)
        catch_up.is_ended = True
        if catch_up.is_noted:
            self._write(END, catch_up, 0)
            del self._noted[catch_up.slot]

    # The journal

    def _write(self, kind: int, catch_up: CatchUp, value: int) -> bool:
        """Write one record, before the change that it tells is made here; False where there is no room."""
        if not self._kept.write(_RECORD.pack(kind, catch_up.slot, value)):
            return False
        if not catch_up.is_noted:
            catch_up.is_noted = True
            self._noted[catch_up.slot] = catch_up
        return True

    def _copy(self, catch_up: CatchUp) -> None:
        """Write how a catch-up is now; what the copy has of it from before is void."""
        if not catch_up.is_ended:
            slot = catch_up.slot
            records = [_RECORD.pack(END, slot, 0)]
            records += [_RECORD.pack(SENT, slot, version) for version in catch_up.in_flight]
            records.append(_RECORD.pack(CURSOR, slot, catch_up.cursor))
            self._journal.append_compacted(b"".join(records), _RECORD.size)
