from __future__ import annotations

import pytest

from core.message import StoredBatch
from core.properties import CANCEL, decode_properties
from core.schedule.slots import FAR_MS, read_due
from core.schedule.taking_back import REMEMBERED_MAX, TakenBack, identity_of
from tests.support.timer import TimerSite


@pytest.fixture
def site(tmp_path):
    site = TimerSite(tmp_path / "data")
    yield site
    site.store.close()


def rows(site):
    """Return what waits, as (body, due moment, what it is known by), in the order of the queues."""
    found = []
    for waiting in site.timer.waiting():
        batch = StoredBatch(100)
        site.broker.read(waiting.queue_ref, waiting.first, batch, 100, 1 << 20)
        for i in range(batch.count):
            text = bytes(batch.buf[batch.properties_start[i] : batch.properties_end[i]])
            if CANCEL not in decode_properties(text) and site.timer.is_waiting(read_due(text), batch, i):
                body = bytes(batch.buf[batch.body_start[i] : batch.body_end[i]])
                found.append((body, read_due(text), identity_of(batch, i)))
    return found


@pytest.mark.parametrize("delay_ms", [5_000, 3 * FAR_MS])
@pytest.mark.parametrize("crashes", [False, True])
def test_one_of_many_is_taken_back_by_what_its_record_is_known_by(site, delay_ms, crashes):
    for body in (b"a", b"b", b"c"):
        site.put(body, delay_ms)
    (_, due_ms, identity) = next(row for row in rows(site) if row[0] == b"b")
    assert site.timer.take_back(identity, due_ms, site.now_ms) >= 0
    site.turn()
    assert [body for body, *_ in rows(site)] == [b"a", b"c"]
    if crashes:
        site.crash()
    site.advance(delay_ms)
    assert site.came() == [b"a", b"c"]
    assert rows(site) == []


def test_what_waits_is_told_in_the_order_in_which_it_is_due(site):
    for delay_ms in (9 * FAR_MS, 3_600_000, 3 * FAR_MS, 1_000, 120_000):
        site.put(b"%d" % delay_ms, delay_ms)
    assert [int(body) for body, *_ in rows(site)] == [1_000, 120_000, 3_600_000, 3 * FAR_MS, 9 * FAR_MS]
    site.advance(1_000)
    assert [int(body) for body, *_ in rows(site)] == [120_000, 3_600_000, 3 * FAR_MS, 9 * FAR_MS]


def test_those_taken_back_are_remembered_up_to_a_bound_until_they_are_due(site):
    site.put(b"a", 5_000)
    ((_, due_ms, identity),) = rows(site)
    batch = StoredBatch(1)
    waiting = site.timer.waiting()[0]
    site.broker.read(waiting.queue_ref, waiting.first, batch, 1, 1 << 20)
    taken = TakenBack()
    for number in range(REMEMBERED_MAX):
        taken.add(b"%d" % number, 10, 0)
    taken.add(identity, due_ms, 5)
    assert not taken.has(batch, 0)
    taken.add(identity, due_ms, 10)
    assert taken.has(batch, 0)
