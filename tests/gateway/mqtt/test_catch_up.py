"""What is owed of retained messages is there again after a crash at any point, and the journal stays small."""

from __future__ import annotations

from array import array
from collections import deque

import pytest
from hypothesis import given, settings, strategies as st

from core.store.journal import Journal
from gateway.mqtt import catch_up as module
from gateway.mqtt.catch_up import Ahead, CatchUps
from tests.support.stores import FullJournal, MemoryJournal, MemoryPlaces

UNTIL = 1_000_000
LOG_END = 2_000_000


class Disk:
    """What outlives a process: the journal and the ends, in slots 0 to 3."""

    def __init__(self, journal=None):
        self.journal = journal or MemoryJournal()
        self.places = MemoryPlaces()
        for _ in range(4):
            self.places.acquire()

    def open(self, log_end=LOG_END):
        catch_ups = CatchUps(self.journal, self.places)
        owed = [slot for slot in range(4) if self.places.get(slot)]
        catch_ups.load(owed, log_end)
        catch_ups.finish_load()
        taken = {slot: catch_ups.take_back(slot, b"f", self.places.get(slot)) for slot in owed}
        return catch_ups, taken


def send(catch_ups, catch_up, *offsets):
    for offset in offsets:
        assert catch_ups.note_sent(catch_up, offset, is_in_flight=True)


def test_catch_up_comes_back_with_what_is_in_flight_and_its_cursor():
    disk = Disk()
    catch_ups, _ = disk.open()
    one = catch_ups.begin(2, b"f", UNTIL)
    send(catch_ups, one, 100, 200, 300)
    assert catch_ups.note_sent(one, 400, is_in_flight=False)
    catch_ups.note_done(one, 1)
    for _ in range(2):
        _, taken = disk.open()
        assert list(taken) == [2]
        assert (list(taken[2].in_flight), taken[2].cursor, taken[2].until) == ([200, 300], 401, UNTIL)


def test_nothing_is_written_for_who_is_sent_nothing():
    disk = Disk()
    catch_ups, _ = disk.open()
    one = catch_ups.begin(0, b"f", UNTIL)
    catch_ups.restart(one, UNTIL + 1)
    catch_ups.end(one)
    assert disk.journal.records == []
    assert disk.places.get(0) == 0


def test_catch_up_is_over_when_all_is_sent_and_acknowledged():
    catch_ups, _ = Disk().open()
    one = catch_ups.begin(0, b"f", 101)
    assert not one.is_over
    send(catch_ups, one, 100)
    assert not one.is_over
    catch_ups.note_done(one, 1)
    assert one.is_over


def test_catch_up_that_is_finished_owes_no_more_than_what_is_in_flight():
    disk = Disk()
    catch_ups, _ = disk.open()
    one, idle = (catch_ups.begin(slot, b"f", UNTIL) for slot in (1, 2))
    send(catch_ups, one, 10, 20)
    catch_ups.finish(one)
    catch_ups.finish(idle)
    assert (one.is_over, idle.is_over) == (False, True)
    catch_ups, taken = disk.open()
    assert (taken[1].cursor, list(taken[1].in_flight), taken[1].is_over) == (UNTIL, [10, 20], False)
    catch_ups.note_done(taken[1], 2)
    assert taken[1].is_over


def test_slot_that_ended_owes_nothing_to_its_next_owner():
    disk = Disk()
    catch_ups, _ = disk.open()
    one = catch_ups.begin(1, b"f", UNTIL)
    send(catch_ups, one, 100)
    catch_ups.end(one)
    catch_ups.note_done(one, 1)  # what was in flight is acknowledged later
    catch_ups.begin(1, b"g", UNTIL)
    _, taken = disk.open()
    assert (list(taken[1].in_flight), taken[1].cursor) == ([], 0)


def test_restart_keeps_what_is_in_flight_and_each_message_comes_back_as_often_as_it_was_sent():
    disk = Disk()
    catch_ups, _ = disk.open()
    one = catch_ups.begin(0, b"f", UNTIL)
    send(catch_ups, one, 100, 200)
    catch_ups.restart(one, UNTIL + 5)
    assert (one.cursor, one.round) == (0, 1)
    send(catch_ups, one, 100)
    _, taken = disk.open()
    assert (list(taken[0].in_flight), taken[0].cursor, taken[0].until) == ([100, 100, 200], 101, UNTIL + 5)


def test_what_the_log_lost_is_not_owed_also_when_the_log_has_grown_again():
    disk = Disk()
    catch_ups, _ = disk.open()
    one = catch_ups.begin(0, b"f", UNTIL)
    send(catch_ups, one, 100, 200, 300)
    for log_end in (250, LOG_END):
        _, taken = disk.open(log_end)
        assert (list(taken[0].in_flight), taken[0].cursor, taken[0].until) == ([100, 200], 250, 250)


def test_full_disk_holds_messages_back_and_what_was_acknowledged_is_written_later():
    disk = Disk(FullJournal())
    catch_ups, _ = disk.open()
    one, two = catch_ups.begin(0, b"f", UNTIL), catch_ups.begin(1, b"g", UNTIL)
    send(catch_ups, one, 100, 200)
    send(catch_ups, two, 100)
    disk.journal.is_full = True
    one.ahead = Ahead([array("q", [400])])
    assert not catch_ups.note_sent(one, 300, is_in_flight=True)
    assert (list(one.in_flight), one.cursor, one.ahead) == ([100, 200], 201, None)
    catch_ups.note_done(one, 1)
    catch_ups.end(two)
    disk.journal.is_full = False
    send(catch_ups, one, 300)
    _, taken = disk.open()
    assert {slot: list(back.in_flight) for slot, back in taken.items()} == {0: [200, 300]}


def test_journal_stays_small_through_many_windows(monkeypatch):
    monkeypatch.setattr(module, "COMPACT_BYTES_MIN", 2_000)
    disk = Disk()
    catch_ups, _ = disk.open()
    one = catch_ups.begin(0, b"f", UNTIL)
    largest = 0
    for start in range(0, 10_000, 50):
        send(catch_ups, one, *range(start, start + 50))
        catch_ups.note_done(one, 50)
        largest = max(largest, disk.journal.bytes_used)
    assert largest < 8_000
    assert disk.journal.compactions > 10
    _, taken = disk.open()
    assert (list(taken[0].in_flight), taken[0].cursor) == ([], 10_000)


steps = st.lists(
    st.tuples(
        st.sampled_from(["send", "send", "send", "pass", "done", "restart", "end", "kill"]),
        st.integers(0, 3),
        st.integers(1, 3),
    ),
    max_size=80,
)


@settings(max_examples=200)
@given(steps, st.sampled_from([60, 300, 1 << 20]))
def test_any_history_comes_back_as_it_was(history, compact_bytes_min):
    before, module.COMPACT_BYTES_MIN = module.COMPACT_BYTES_MIN, compact_bytes_min
    try:
        run_history(history)
    finally:
        module.COMPACT_BYTES_MIN = before


def run_history(history):
    disk = Disk()
    catch_ups, taken = disk.open()
    in_flight, cursors = {}, {}
    for action, slot, count in history:
        if slot not in in_flight and action != "kill":
            taken[slot] = catch_ups.begin(slot, b"f", UNTIL)
            in_flight[slot], cursors[slot] = deque(), 0
        if action == "send":
            for _ in range(count):
                send(catch_ups, taken[slot], cursors[slot])
                in_flight[slot].append(cursors[slot])
                cursors[slot] += 1
        elif action == "pass":
            assert catch_ups.note_sent(taken[slot], cursors[slot], is_in_flight=False)
            cursors[slot] += 1
        elif action == "done":
            done = [in_flight[slot].popleft() for _ in range(min(count, len(in_flight[slot])))]
            catch_ups.note_done(taken[slot], len(done))
        elif action == "restart":
            catch_ups.restart(taken[slot], UNTIL)
            cursors[slot] = 0
        elif action == "end":
            catch_ups.end(taken.pop(slot))
            del in_flight[slot], cursors[slot]
        else:
            disk.journal.reopen()
            catch_ups, taken = disk.open()
            in_flight = {key: deque(sorted(offsets)) for key, offsets in in_flight.items()}
        assert {key: one.in_flight for key, one in taken.items()} == in_flight
        assert {key: one.cursor for key, one in taken.items()} == cursors


@pytest.mark.parametrize("lost", range(1, 40))
def test_torn_end_of_the_file_leaves_an_older_state(tmp_path, lost):
    journal = Journal.open(tmp_path / "j")
    disk = Disk(journal)
    catch_ups, _ = disk.open()
    one = catch_ups.begin(0, b"f", UNTIL)
    send(catch_ups, one, 100, 200, 300)
    end = journal.bytes_used
    journal.close()
    data = bytearray((tmp_path / "j").read_bytes())
    data[end - lost : end] = bytes(lost)
    (tmp_path / "j").write_bytes(data)
    disk.journal = Journal.open(tmp_path / "j")
    _, taken = disk.open()
    assert list(taken[0].in_flight) == [100, 200, 300][: 3 - -(-lost // 21)]
    disk.journal.close()


@given(st.lists(st.lists(st.integers(0, 99), max_size=9), max_size=5))
def test_offsets_of_all_runs_come_in_order(runs):
    ahead = Ahead([array("q", sorted(run)) for run in runs])
    got = []
    while ahead:
        got.append(ahead.pop())
    assert got == sorted(offset for run in runs for offset in run)


@given(
    versions=st.lists(st.integers(0, 50), min_size=1, max_size=8),
    order=st.randoms(use_true_random=False),
    kept=st.integers(0, 8),
    broken_at=st.integers(0, 100),
)
@settings(max_examples=100, deadline=None)
def test_another_order_that_is_written_down_in_part_loses_nothing(versions, order, kept, broken_at):
    disk = Disk()
    catch_ups, _ = disk.open()
    one = catch_ups.begin(0, b"f", UNTIL)
    send(catch_ups, one, *versions)
    before = one.in_flight.copy()
    after = sorted(set(versions))[: max(kept, 1)]
    order.shuffle(after)
    one.in_flight = deque(after)
    count = len(disk.journal.records)
    catch_ups.note_order(one, before)
    written = disk.journal.records[count:]
    is_whole = broken_at >= len(written)
    del disk.journal.records[count + broken_at :]
    _, taken = disk.open()
    found = taken[0]
    if is_whole:
        assert (list(found.in_flight), found.cursor) == (sorted(after), one.cursor)
    else:
        assert set(found.in_flight) >= set(after)
        assert found.cursor <= max(one.cursor, max(after) + 1)
