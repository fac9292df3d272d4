"""What durable sessions are in the middle of at QoS 2, both ways, in a journal that outlives a killed process.

What comes in: a packet identifier is noted before its message is appended, with the end of the log and the number of
the message in its batch, so that a start after a kill can tell from the log whether it got there. It is noted as
released when the client says so. What goes out: a message is noted before it is sent, with its number in the session's
window, which gives the packet identifier; then that the client has it, and that it is complete. What holds:

- A message that is noted as taken is in the log, or is not taken when the gateway starts again.
- A message that is in the log is known as taken, also where a power cut left the log and took the note: its record says
  of which client it is and under which packet identifier, and the journal up to where in the log all were noted.
- A message that was sent is sent again with its own packet identifier, and no more once the client has it.
- A session that was never at QoS 2 has no record.

Source: docs/storage-format.md, "Journal of QoS 2".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain

from core.errors import DataFolderUnusableError, DiskFullError
from core.record_journal import RecordJournal
from gateway.mqtt.exact_records import (
    COMPLETE,
    FORGET,
    FORGET_SLOT,
    NAME,
    NAME_HEAD,
    NOBODY,
    RECEIVED,
    RECORD,
    RELEASED,
    RESET,
    SENT,
    SMALL_MASK,
    STATES,
    TAKEN,
    Found,
    SentBefore,
    done_changes,
    ended_changes,
    found_changes,
    mark_record,
    name_records,
    open_changes,
    sent_changes,
    sent_of,
)
from gateway.mqtt.inflight import EXACT_COMPLETE, EXACT_RECEIVED, InflightWindow
from gateway.mqtt.kept_records import KeptRecords
from gateway.mqtt.session import Session, Subscription

COMPACT_BYTES_MIN = 4 << 20  # some 100,000 messages
MARK_BYTES = 64 << 20  # of the log between two marks: a start reads no more of it

_FAR = 2**62


class ExactJournal:
    """The journal of all sessions of a door.

    On a full disk no message at QoS 2 is taken. What could not be written of those that go out is written later; a
    crash before that makes those messages come once more.

    Args:
        journal: Where all is noted.
        end_place: Returns where the log ends; without it there are no marks, and no look for what was not noted.
    """

    def __init__(self, journal: RecordJournal, end_place: Callable[[], int] | None = None) -> None:
        self._journal = journal
        self._end_place = end_place
        self._newest = 0  # end of the log + 1 at the last batch or mark: what lies before was noted
        self._noted: set[tuple[int, int]] = set()  # session and packet identifier of each message of that batch
        self._names: dict[int, bytes] = {}  # of all sessions of the journal, while it is read
        self._is_marked = False  # the journal has marks: the records of all that it notes say their identifiers
        self._sessions: dict[int, Session] = {}
        self._unstored: dict[int, dict[int, list[int]]] = {}  # by session, end of the log + 1: what is not safe so far
        self._ended: dict[int, dict[int, dict[int, int]]] = {}  # by session and slot, of ends that may not be durable
        self._next_number = 1
        self._found: dict[int, Found] = {}  # of sessions that are not loaded yet
        self._numbers: dict[bytes, int] = {}  # of those, by client
        self._is_changed = False  # at the start
        self._kept = KeptRecords(
            journal,
            record_bytes=RECORD.size,
            compact_bytes_min=COMPACT_BYTES_MIN,
            what="what is on its way at QoS 2",
            keys=self._keys,
            copy=self._copy,
        )

    # The start

    def load(
        self,
        count_from: Callable[[int], int],
        find_from: Callable[[int], list[tuple[bytes, int, int]]] | None = None,
        sure_place: int = _FAR,
        *,
        takes_unnoted: bool = True,
    ) -> None:
        """Read the journal; followed by `choose`, `finish_load`, and `take_back` for each session.

        Args:
            count_from: Returns how many messages at QoS 2 the log holds from a place on.
            find_from: Returns client, packet identifier and place of those of durable sessions, in order.
            sure_place: Of the log all is there before it; behind it a power cut may have taken any pages.
            takes_unnoted: Whether what the log alone has is taken: where nobody is answered before the disk has it.

        Raises:
            DataFolderUnusableError: It holds a record that no such journal has.
        """
        end = self._end_place() if self._end_place is not None else _FAR
        for record in self._journal.replay():
            self._replay(record, end)
        newest = self._newest
        sure = max(min(sure_place, newest - 1) if self._is_marked else newest - 1, 0)
        doubted = [at for one in self._found.values() for at, _ in one.taken.values() if sure < at <= newest]
        count = count_from(newest - 1) if doubted and not self._is_marked else 0
        there = find_from(min([*doubted, newest]) - 1) if find_from and newest and (doubted or takes_unnoted) else []
        last = {(client_id, packet_id): place for client_id, packet_id, place in there}
        for one in self._found.values():  # a kill breaks off the last batch alone
            places = {k: max(last.get((one.name, k), -1), last.get((b"", k), -1)) for k in one.taken}
            one.taken = {
                k: (at, i)
                for k, (at, i) in one.taken.items()
                if at <= sure or (at == newest and i < count) or at - 1 <= places[k]
            }
        if takes_unnoted:
            self._take_in([(client_id, packet_id) for client_id, packet_id, place in there if place >= newest - 1])
        self._names.clear()
        self._noted.clear()

    def _take_in(self, found: list[tuple[bytes, int]]) -> None:
        """Know what is in the log, and was to be noted before it."""
        noted = {(self._names.get(number, b""), packet_id) for number, packet_id in self._noted}
        numbers = {one.name: number for number, one in sorted(self._found.items())}
        for client_id, packet_id in found:
            if (client_id, packet_id) in noted:  # the batch of the newest note is whole or in part in both
                noted.remove((client_id, packet_id))
                continue
            if client_id not in numbers:
                numbers[client_id] = self._next_number
                self._found[self._next_number] = Found(client_id)
                self._next_number += 1
            self._found[numbers[client_id]].taken[packet_id] = (0, 0)

    def _note_place(self, at: int, end: int, number: int, packet_id: int) -> None:
        """Note where the log ended as something was noted; a power cut may have taken what lay there."""
        if at - 1 > end:
            self._is_changed = True  # the log will be as long again: then it would seem to be a place of what comes now
            return
        if at > self._newest:
            self._newest = at
            self._noted.clear()
        if at and at == self._newest and packet_id:
            self._noted.add((number, packet_id))

    def _replay(self, record: bytes, end: int) -> None:
        if len(record) <= NAME_HEAD.size:
            raise self._unusable(record)
        number, word = NAME_HEAD.unpack_from(record)
        kind, small = word >> 24, word & SMALL_MASK
        self._next_number = max(self._next_number, number + 1)
        if kind == NAME:
            found = self._found.setdefault(number, Found())
            found.name += record[NAME_HEAD.size :]
            self._names[number] = found.name
            return
        if len(record) != RECORD.size or not FORGET <= kind <= RESET:
            raise self._unusable(record)
        if kind in {FORGET, RESET}:
            self._found.pop(number, None)
            return
        _, _, first, second = RECORD.unpack(record)
        if number == NOBODY:
            self._is_marked = True
            self._note_place(first, end, number, 0)
            return
        found = self._found.setdefault(number, Found())
        if kind == TAKEN:
            self._note_place(first, end, number, small)
            found.taken[small] = (first, second)
        elif kind == RELEASED:
            found.taken.pop(small, None)
        elif kind == SENT:
            found.note_sent(first, small, second)
        elif kind == FORGET_SLOT:
            found.forget_slot(small)
        elif first in found.sent:
            found.sent[first].state = STATES[kind]

    def _unusable(self, record: bytes) -> DataFolderUnusableError:
        reason = f"no journal of QoS 2: it has a record of {len(record)} bytes"
        return DataFolderUnusableError(str(self._journal.path), reason)

    def choose(self, choose: Callable[[bytes, list[SentBefore]], list[SentBefore] | None]) -> set[bytes]:
        """Let go of what needs not be known any more; return the clients of which something is left.

        Args:
            choose: Returns what is still to be known of what a client was sent, None where it has no session any more.
        """
        self._is_changed = self._is_changed or bool(self._found)
        newest = {found.name: number for number, found in sorted(self._found.items())}
        for number, found in list(self._found.items()):
            is_void = number != newest[found.name]  # its session ended while a disk was full
            sent = None if is_void else choose(found.name, [found.sent[key] for key in sorted(found.sent)])
            if sent is not None and (found.taken or sent):
                found.sent = {one.number: one for one in sent}
                self._numbers[found.name] = number
            else:
                del self._found[number]
        return set(self._numbers)

    def finish_load(self) -> None:
        """Write down what is left, and where the log ends."""
        if self._is_changed:
            self._kept.rewrite()
        elif self._end_place is not None:
            self._mark(self._end_place())

    def keep_up(self) -> None:
        """Note where the log ends, if it grew by much since the last time."""
        if self._end_place is not None and (end := self._end_place()) - self._newest >= MARK_BYTES:
            self._mark(end)

    def _mark(self, end: int) -> None:
        self._newest = end + 1
        self._kept.write(mark_record(end))

    def take_back(self, session: Session) -> list[SentBefore]:
        """Know a session again that is loaded now; return what was sent to it, in the order of sending."""
        number = self._numbers.pop(session.client_id, 0)
        if not number:
            return []
        found = self._found.pop(number)
        session.exact_number = number
        session.taken = set(found.taken)
        self._sessions[number] = session
        return list(found.sent.values())

    def look(self, client_id: bytes) -> list[SentBefore]:
        """Return what `take_back` would, to be looked at."""
        number = self._numbers.get(client_id)
        return [] if number is None else list(self._found[number].sent.values())

    # What comes in

    def note_taken(self, session: Session, packet_ids: list[int], log_end: int) -> tuple[int, int]:
        """Note the identifiers of messages appended next, at `log_end`; return what `note_stored` is told after that.

        Raises:
            DiskFullError: There is no room; nothing is noted.
        """
        if session.taken is None:
            session.taken = set()
        if session.is_persistent:
            self._name(session)
            number, at = session.exact_number, log_end + 1
            records = [RECORD.pack(number, TAKEN << 24 | one, at, i) for i, one in enumerate(packet_ids)]
            self._kept.append(b"".join(records))
            self._newest = at
            self._unstored.setdefault(number, {})[at] = packet_ids
        session.taken.update(packet_ids)
        return session.exact_number, log_end + 1

    def note_stored(self, noted: tuple[int, int]) -> None:
        """Take note that the log is not going to lose what `note_taken` was told of, or has lost it."""
        batches = self._unstored.get(noted[0], {})
        batches.pop(noted[1], None)
        if not batches:
            self._unstored.pop(noted[0], None)

    def note_released(self, session: Session, packet_ids: Iterable[int]) -> None:
        """Note that packet identifiers that were taken stand for nothing any more."""
        if session.taken is None:
            return
        released = list(packet_ids)
        session.taken.difference_update(released)
        if session.exact_number:
            self._write([(RELEASED, packet_id, 0, 0) for packet_id in released], session)

    # What goes out

    def note_sent(self, session: Session, slot: int, sent: list[tuple[int, int]]) -> None:
        """Note messages that are about to be sent: their numbers in the window and their queue offsets."""
        try:
            self._name(session)
        except DiskFullError as error:
            self._kept.fall_behind(error)
            return
        self._write([(SENT, slot, number, offset) for number, offset in sent], session)

    def note_received(self, session: Session, numbers: Iterable[int]) -> None:
        """Note that the client has messages."""
        if session.exact_number:
            self._write([(RECEIVED, 0, number, 0) for number in numbers], session)

    def note_complete(self, session: Session, numbers: Iterable[int]) -> None:
        """Note that nothing more is to be said of messages."""
        if session.exact_number:
            self._write([(COMPLETE, 0, number, 0) for number in numbers], session)

    def note_changed(self, session: Session, window: InflightWindow) -> None:
        """Note which messages went a step on in the window's last call of `acknowledge`."""
        self.note_received(session, [each for each in window.changed if window.state_of(each) == EXACT_RECEIVED])
        self.note_complete(session, [each for each in window.changed if window.state_of(each) == EXACT_COMPLETE])

    def expect_end(self, subscription: Subscription) -> None:
        """Know what was sent for a subscription, which gives up its slots, until `forget_slot`.

        A process that is killed before the end is durable has the subscription again.
        """
        number = subscription.session.exact_number
        sent = sent_of(subscription) if number else {}
        if sent:
            self._ended.setdefault(number, {}).setdefault(subscription.floor_slot, {}).update(sent)

    def keep_slot(self, session: Session, slot: int) -> None:
        """Take note that the end of a subscription is durable; it has its slot while something is under way."""
        ended = self._ended.get(session.exact_number, {})
        ended.pop(slot, None)
        if not ended:
            self._ended.pop(session.exact_number, None)

    def note_slot(self, subscription: Subscription) -> None:
        """Note under the slot that a subscription has now what a process before sent, and it may still come to.

        It stays noted under the slot that it was sent by, too: a process that is killed goes on by either.
        """
        if subscription.done_before and subscription.session.exact_number:
            self._write_all(done_changes(subscription), subscription.session)

    def forget_slot(self, session: Session, slot: int) -> None:
        """Forget what was sent for a subscription that is no more: its slot will be another's."""
        self.keep_slot(session, slot)
        if session.exact_number:
            self._write([(FORGET_SLOT, slot, 0, 0)], session)

    def forget_done(self, session: Session, slot: int) -> None:
        """Forget what was completed of a catch-up, and nothing that is under way."""
        if session.exact_number:
            self._write([(FORGET_SLOT, slot, 0, 0), *open_changes(session, slot)], session)

    def forget(self, session: Session) -> None:
        """Forget a session."""
        if session.exact_number:
            self._write([(FORGET, 0, 0, 0)], session)
            self._sessions.pop(session.exact_number, None)
            self._unstored.pop(session.exact_number, None)
            self._ended.pop(session.exact_number, None)
            session.exact_number = 0

    # The journal

    def _name(self, session: Session) -> None:
        """Give a session a number, the first time that it has something to be noted."""
        if session.exact_number:
            return
        number = self._next_number
        for record in name_records(number, session.client_id):
            self._journal.append_many(record, len(record))
        self._next_number += 1
        session.exact_number = number
        self._sessions[number] = session

    def _write(self, changes: list[tuple[int, int, int, int]], session: Session) -> None:
        """Write what happened to one session; a full disk is told in the log and not to the client."""
        self._write_all([(kind << 24 | small, a, b) for kind, small, a, b in changes], session)

    def _write_all(self, changes: Iterable[tuple[int, int, int]], session: Session) -> None:
        """Do that with changes of which kind and small number are one word."""
        records = b"".join([RECORD.pack(session.exact_number, word, a, b) for word, a, b in changes])
        if records:
            self._kept.write(records)

    def _keys(self) -> list[int]:
        return [*([] if self._end_place is None else [NOBODY]), *self._sessions, *self._found]

    def _copy(self, number: int) -> None:
        """Write how a session is now; what the copy has of it from before is void."""
        if number == NOBODY:
            assert self._end_place is not None
            self._journal.append_compacted(mark_record(self._end_place()), RECORD.size)
            return
        session = self._sessions.get(number)
        found = self._found.get(number)
        if session is not None:
            name, taken, changes = session.client_id, self._taken_of(session), sent_changes(session)
            changes = chain(changes, ended_changes(session, self._ended.get(number, {})))
        elif found is not None:
            name, taken, changes = found.name, found.taken, found_changes(found)
        else:
            return
        self._journal.append_compacted(RECORD.pack(number, RESET << 24, 0, 0), RECORD.size)
        for record in name_records(number, name):
            self._journal.append_compacted(record, len(record))
        records = [RECORD.pack(number, TAKEN << 24 | packet_id, *where) for packet_id, where in taken.items()]
        records += [RECORD.pack(number, word, a, b) for word, a, b in changes]
        if records:
            self._journal.append_compacted(b"".join(records), RECORD.size)

    def _taken_of(self, session: Session) -> dict[int, tuple[int, int]]:
        """Return what is taken of a session, with its place where a power cut may still lose it: 0 elsewhere."""
        where = dict.fromkeys(session.taken or (), (0, 0))
        for at, packet_ids in self._unstored.get(session.exact_number, {}).items():
            where.update({one: (at, i) for i, one in enumerate(packet_ids) if one in where})
        return where
