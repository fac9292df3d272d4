"""How messages of shared queues ended is known after a restart, and after the journal was compacted."""

from __future__ import annotations

from array import array

import pytest

from core.message import StoredBatch
from core.pop import endings as kept
from core.pop.acknowledgers import Acknowledgers, NoRows
from core.pop.changes import ACK, ChangeLog
from core.pop.ending_codes import GROUPS_MARK, MARK
from core.pop.endings import Ending, Endings
from core.pop.journal import QUEUE_WORK
from core.pop.pop_service import PopService
from core.pop.told_endings import ToldEndings
from tests.support.stores import MemoryJournal, MemoryQueues

Q, G = b"%LMQ%q", b"g"
NO_LIMIT = 1 << 40


class Site:
    """Pop queues of a process, and of those after it."""

    def __init__(self):
        self.store, self.journal = MemoryQueues(), MemoryJournal()
        self.service = PopService(self.store, self.journal)

    def restart(self):
        self.journal.reopen()
        self.service = PopService(self.store, self.journal)

    def open(self, count=0):
        queue = self.service.open(Q, G)
        self.store.grow(queue.queue_ref, count)
        return queue

    def take(self, count):
        assert self.service.open(Q, G).take(StoredBatch(64), count, NO_LIMIT, 0, 0) == count

    def finish(self, *offsets, reason="", now_ms=0):
        queue = self.service.open(Q, G)
        if not reason:
            queue.ack_many(array("q", offsets), len(offsets))
            return
        self.service.endings.note((Q, G), offsets, len(offsets), reason, now_ms)
        with self.service.ending_as(reason, now_ms):
            queue.ack_many(array("q", offsets), len(offsets))

    def told(self, count):
        return [self.service.endings.find(Q, G, offset) for offset in range(count)]

    def compact(self):
        """Make the service write its journal anew."""
        queue, before = self.service.open(b"%LMQ%other", G), self.journal.compactions
        while self.journal.compactions == before:
            self.store.grow(queue.queue_ref, 1)
            assert queue.take(StoredBatch(1), 1, NO_LIMIT, 0, 0)
            queue.ack(queue.next_offset - 1)


class CompactedSite(Site):
    """The same, which stops in a compaction of which no queue but others are copied."""

    def __init__(self, monkeypatch):
        monkeypatch.setattr("core.pop.journal.COMPACT_BYTES_MIN", 2_000)
        monkeypatch.setattr("core.pop.journal.WORK_PER_RECORD", QUEUE_WORK)
        super().__init__()
        self.others = [self.service.open(b"%%LMQ%%other%d" % number, G) for number in range(30)]

    def work(self):
        other = self.others[0]
        self.store.grow(other.queue_ref, 1)
        assert other.take(StoredBatch(1), 1, NO_LIMIT, 0, 0)
        other.ack(other.next_offset - 1)

    def begin_compaction(self):
        while not self.journal.is_compacting:
            self.work()

    def end_compaction(self):
        before = self.journal.compactions
        while self.journal.compactions == before:
            self.work()

    def restart(self):
        self.end_compaction()
        super().restart()


@pytest.fixture(params=["as written", "compacted", "compacted, started and compacted"])
def site(request, monkeypatch):
    if request.param != "as written":
        monkeypatch.setattr("core.pop.journal.COMPACT_BYTES_MIN", 1_000)
    made = Site()

    def restart():
        if request.param != "as written":
            made.compact()
        Site.restart(made)
        if request.param.endswith("started and compacted"):
            made.compact()
            Site.restart(made)

    made.restart = restart
    return made


def test_what_nobody_acknowledged_is_told_with_its_moment_and_the_rest_was_acknowledged(site):
    site.open(6)
    site.take(5)
    site.finish(0, 3)
    site.finish(1, 2, reason="rejected", now_ms=70)
    site.finish(4, reason="expired", now_ms=90)
    before = site.told(6)
    site.restart()
    assert site.told(6) == before
    assert before == [None, *[Ending("rejected", 70, 70)] * 2, None, Ending("expired", 90, 90), None]
    assert site.service.tells_endings(Q, G)
    assert site.service.endings.is_kept(Q, G, 0)
    queue = site.service.open(Q, G)
    assert (queue.floor, queue.next_offset, queue.unacked_count) == (5, 5, 0)


def test_runs_that_grow_are_told_from_their_first_moment_to_their_last(site):
    site.open(6)
    site.take(6)
    for offset in range(6):
        site.finish(offset, reason="maxlen", now_ms=10 + offset)
    site.restart()
    assert site.told(6) == [Ending("maxlen", 10, 15)] * 6


def test_what_is_purged_is_told_and_what_consumers_have_stays_theirs(site):
    queue = site.open(6)
    site.take(3)
    queue.nack(1)
    queue.purge(50)
    site.restart()
    told = site.told(6)
    assert {each.reason for each in told[1:2]} <= {"purged", "acknowledged or purged"}
    assert told[3:] == [Ending("purged", 50, 50)] * 3
    queue = site.service.open(Q, G)
    assert ([queue.attempt(offset) for offset in range(4)], queue.ready_count) == ([1, 0, 1, 0], 2)


def test_a_purge_says_nothing_of_what_ended_before_or_is_with_consumers(site):
    queue = site.open(4)
    site.take(3)
    site.finish(1, reason="rejected", now_ms=4)
    queue.purge(50)
    site.finish(0, 2)
    assert site.told(4) == [None, Ending("rejected", 4, 4), None, Ending("purged", 50, 50)]
    site.restart()
    assert site.told(4) == [None, Ending("rejected", 4, 4), None, Ending("purged", 50, 50)]


def test_what_is_purged_while_the_journal_is_compacted_is_told_of_just_that(monkeypatch):
    site = CompactedSite(monkeypatch)
    site.open(6)
    site.take(3)
    site.finish(0, 1, 2)
    site.begin_compaction()
    site.service.open(Q, G).purge(50)
    site.restart()
    assert site.told(6) == [None] * 3 + [Ending("purged", 50, 50)] * 3


def test_what_ends_while_the_journal_is_compacted_pushes_nothing_out(monkeypatch):
    monkeypatch.setattr(kept, "RUNS_MAX", 2)
    site = CompactedSite(monkeypatch)
    site.open(6)
    site.take(3)
    site.begin_compaction()
    site.finish(0, reason="rejected", now_ms=4)
    site.finish(2, reason="rejected", now_ms=5)
    site.restart()
    assert site.service.endings.is_kept(Q, G, 0)
    assert site.told(3) == [Ending("rejected", 4, 4), None, Ending("rejected", 5, 5)]


def test_a_reader_that_is_forgotten_while_the_journal_is_compacted_stays_so(monkeypatch):
    monkeypatch.setattr(kept, "READERS_MAX", 2)
    site = CompactedSite(monkeypatch)
    site.open(3)
    site.take(3)
    site.finish(0, 1, 2, reason="rejected", now_ms=4)
    site.begin_compaction()
    for client in (b"one", b"another"):
        site.service.endings.note((b"%LMQ%mqtt%a", client), [1], 1, "expired", 5)
    site.restart()
    assert not site.service.endings.is_kept(Q, G, 0)


@pytest.mark.parametrize("is_amid", [False, True])
def test_a_reader_that_was_forgotten_stays_so_where_more_of_it_ended_since(monkeypatch, is_amid):
    monkeypatch.setattr(kept, "READERS_MAX", 2)
    site = CompactedSite(monkeypatch)
    site.open(3)
    site.take(3)
    site.finish(0, 1, reason="rejected", now_ms=4)
    site.begin_compaction()
    if is_amid:
        site.finish(2, reason="rejected", now_ms=5)
    for client in (b"one", b"another"):
        site.service.endings.note((b"%LMQ%mqtt%a", client), [1], 1, "expired", 6)
    site.end_compaction()
    if not is_amid:
        site.finish(2, reason="rejected", now_ms=5)
    Site.restart(site)
    assert not site.service.endings.is_kept(Q, G, 0)
    assert site.told(3)[2] == Ending("rejected", 5, 5)


def test_what_is_forgotten_stays_so(site, monkeypatch):
    monkeypatch.setattr(kept, "RUNS_MAX", 2)
    site.open(9)
    site.take(9)
    for offset in range(0, 9, 2):
        site.finish(offset, reason="rejected", now_ms=offset)
    site.restart()
    assert not site.service.endings.is_kept(Q, G, 4)
    assert site.service.endings.is_kept(Q, G, 5)
    assert site.told(9)[6:] == [Ending("rejected", 6, 6), None, Ending("rejected", 8, 8)]


def test_a_pop_queue_of_an_earlier_version_is_silent_of_what_was_and_a_new_one_is_not(monkeypatch):
    site = Site()
    with monkeypatch.context() as earlier:
        earlier.setattr(ToldEndings, "begin", lambda *_: None)
        site.open(3)
        site.take(2)
        site.finish(0)
    site.restart()
    site.service.open(b"%LMQ%new", G)
    for number in (1, 2):
        assert not site.service.tells_endings(Q, G)
        assert site.service.tells_endings(b"%LMQ%new", G)
        site.take(1)
        site.finish(number, reason="rejected", now_ms=5)
        site.restart()
    assert site.told(3) == [None, *[Ending("rejected", 5, 5)] * 2]
    assert not site.service.tells_endings(b"%LMQ%nothing", G)


def test_a_queue_that_lost_messages_in_a_power_cut_knows_nothing_of_those_before():
    site = Site()
    site.open(5)
    site.take(5)
    site.finish(*range(5), reason="rejected", now_ms=5)
    site.store.bounds[site.service.open(Q, G).queue_ref][1] = 3
    site.restart()
    site.service.open(Q, G)
    site.restart()
    assert site.told(5) == [None] * 5
    assert not site.service.endings.is_kept(Q, G, 2)


def test_a_message_that_a_letter_finished_after_a_crash_is_told_as_a_dead_letter():
    site = Site()
    queue = site.open(2)
    site.take(2)
    number, offset = queue.identify(1)
    site.restart()
    assert site.service.finish(number, offset, 10 * offset)
    site.service.write()
    for _ in range(2):
        assert site.service.endings.find(Q, G, 1).reason == "dead letter"
        site.restart()


def test_readers_that_are_kept_are_known_where_others_were_forgotten(monkeypatch):
    site = Site()
    for name in (b"%LMQ%a", b"%LMQ%b", Q):
        queue = site.service.open(name, G)
        site.store.grow(queue.queue_ref, 2)
        queue.take(StoredBatch(2), 2, NO_LIMIT, 0, 0)
        site.service.endings.note((name, G), [1], 1, "rejected", 3)
        with site.service.ending_as("rejected", 3):
            queue.ack(1)
    monkeypatch.setattr(kept, "READERS_MAX", 2)
    site.restart()
    assert [site.service.endings.is_kept(name, G, 0) for name in (b"%LMQ%a", b"%LMQ%b", Q)] == [False, True, True]
    assert site.told(2) == [None, Ending("rejected", 3, 3)]


def test_groups_of_subscribers_tell_since_a_version_after_that_which_wrote_the_first_mark():
    changes = ChangeLog()
    told = ToldEndings(Endings(), Acknowledgers(NoRows()), changes)
    told.read(3, 0, 0, MARK)
    told.begin(9)
    assert [told.is_told(number) for number in (2, 3, 9)] == [False, True, True]
    assert [told.is_told(number, is_of_subscribers=True) for number in (3, 8, 9)] == [False, False, True]
    later = ToldEndings(Endings(), Acknowledgers(NoRows()), ChangeLog())
    later.read(3, 0, 0, MARK)
    later.read(9, 0, 0, GROUPS_MARK)
    later.begin(20)
    assert [later.is_told(number, is_of_subscribers=True) for number in (8, 9)] == [False, True]


def test_that_readers_were_forgotten_is_not():
    changes, endings = ChangeLog(), Endings()
    told = ToldEndings(endings, Acknowledgers(NoRows()), changes)
    told.begin(7)
    told.begin(8)
    assert (told.is_told(6), told.is_told(7), changes.used) == (False, True, 48)
    again = Endings()
    later = ToldEndings(again, Acknowledgers(NoRows()), ChangeLog())
    later.read(7, 0, 0, MARK | 1)
    later.settle([])
    assert again.has_lost
    assert not endings.has_lost
    assert ACK == 4
