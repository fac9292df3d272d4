from __future__ import annotations

import random

import pytest

from core.properties import CANCEL
from core.schedule.slots import FAR_MS, NEAR_AHEAD_MS, NEAR_MS
from tests.support.late_engine import make_late
from tests.support.store import retire
from tests.support.timer import TimerSite

DAY_MS = FAR_MS
HOUR_MS = 3_600_000
LATE_MS_MAX = 100  # what docs/protocols/rocketmq.md promises


@pytest.fixture
def site(tmp_path):
    site = TimerSite(tmp_path / "data")
    yield site
    site.store.close()


@pytest.mark.parametrize("delay_ms", [1, 999, NEAR_MS, HOUR_MS, NEAR_AHEAD_MS, NEAR_AHEAD_MS + 1, 40 * DAY_MS])
def test_a_message_comes_at_its_moment_and_not_before(site, delay_ms):
    site.put(b"m", delay_ms)
    while site.now_ms < site.wakes[-1] < site.now_ms + delay_ms and delay_ms <= HOUR_MS:
        left = delay_ms - (site.wakes[-1] - site.now_ms)
        site.advance(site.wakes[-1] - site.now_ms)
        assert site.came() == []
        delay_ms = left
    site.advance(delay_ms - 1)
    assert site.came() == []
    site.advance(1)
    assert site.came() == [b"m"]
    site.advance(DAY_MS)
    assert site.came() == [b"m"]


def test_how_late_messages_come_is_counted(site):
    site.put(b"m", 1_000)
    site.put(b"n", 1_990)
    site.advance(2_000)
    assert site.came() == [b"m", b"n"]
    lateness = site.broker.metrics.lateness
    assert (lateness.count, lateness.total_ms) == (2, 1_010)


@pytest.mark.parametrize("seed", range(2))
def test_messages_of_any_delay_come_within_100_ms_of_their_moment_by_the_alarm_alone(site, seed):
    chance = random.Random(seed)
    dues = {}
    came_at = []
    for _ in range(3):
        for _ in range(60):
            body = b"%d" % len(dues)
            scale = chance.choice([10, 1_000, NEAR_MS, HOUR_MS, NEAR_AHEAD_MS, 2 * DAY_MS])
            dues[body] = site.put(body, chance.randrange(1, scale), turn=False)
        came_at += site.run_by_alarm(site.now_ms + chance.randrange(2 * HOUR_MS))
    moment_ms = site.now_ms + 30_000
    for number in range(1_500):  # more than are handed on in one go
        dues[b"many%d" % number] = site.put(b"many%d" % number, moment_ms - site.now_ms, turn=False)
    came_at += site.run_by_alarm(max(dues.values()) + NEAR_MS)
    late_ms = {body: at_ms - dues[body] for body, at_ms in zip(site.came(), came_at, strict=True)}
    assert late_ms.keys() == dues.keys()
    assert 0 <= min(late_ms.values()) <= max(late_ms.values()) <= LATE_MS_MAX


def test_messages_come_in_the_order_in_which_they_are_due_whatever_order_they_were_put_in(site):
    for delay_ms in (70_000, 20, 10, 61_000, 30, 10):
        site.put(b"%d" % delay_ms, delay_ms)
    site.advance(100_000)
    assert site.came() == [b"10", b"10", b"20", b"30", b"61000", b"70000"]


def test_it_asks_to_be_woken_when_the_next_is_due_and_not_where_nothing_waits(site):
    site.turn()
    assert site.wakes == []
    due_ms = site.put(b"m", 5)
    assert site.wakes[-1] == due_ms
    site.advance(5)
    assert site.came() == [b"m"]


def test_a_message_that_is_put_while_others_of_its_minute_wait_comes_before_them(site):
    site.put(b"later", 500)
    due_ms = site.put(b"sooner", 100)
    assert site.wakes[-1] == due_ms
    site.advance(100)
    assert site.came() == [b"sooner"]


def test_more_than_a_batch_comes_at_one_moment_across_segments(site):
    total = 1_000
    for number in range(total):
        site.put(b"%d" % number + bytes(300), 5_000, turn=False)
    site.advance(4_999)
    assert site.came() == []
    site.advance(1)
    assert [body.rstrip(b"\0") for body in site.came()] == [b"%d" % number for number in range(total)]


@pytest.mark.parametrize("delay_ms", [5_000, 3 * DAY_MS])
def test_a_message_that_is_taken_back_does_not_come_and_others_do(site, delay_ms):
    site.put(b"no", delay_ms, extra=b"UNIQ_KEY\x01k1\x02")
    site.put(b"yes", delay_ms, extra=b"UNIQ_KEY\x01k2\x02")
    site.put(b"", delay_ms, extra=CANCEL + b"\x01T+k1\x02")
    site.put(b"", delay_ms, extra=CANCEL + b"\x01U+k2\x02")  # another topic's
    site.crash()
    site.advance(delay_ms)
    assert site.came() == [b"yes"]


def test_what_waited_comes_after_days_of_standing_still_and_what_is_for_later_later(site):
    for day in (1, 2, 3, 50):
        site.put(b"%d" % day, day * DAY_MS)
    site.now_ms += 10 * DAY_MS
    site.crash()
    site.turn()
    assert site.came() == [b"1", b"2", b"3"]
    site.advance(40 * DAY_MS)
    assert site.came() == [b"1", b"2", b"3", b"50"]


def test_a_clock_that_was_set_back_while_it_was_down_makes_nothing_come_twice_or_get_lost(site):
    site.put(b"first", 1_000)
    site.advance(1_000)
    site.now_ms -= 600
    site.reopen()
    site.put(b"second", 100)
    site.advance(700)
    assert site.came() == [b"first", b"second"]


def test_retention_leaves_what_waits_and_lets_go_of_what_came(site):
    site.put(b"waits" + bytes(1_000), 20 * HOUR_MS)
    for _ in range(200):
        site.put(bytes(1_000), 1_000, turn=False)
    site.advance(1_000)
    site.advance(2 * HOUR_MS)
    positions = list(site.timer.positions())
    assert len(positions) == 1
    retire(site.store, site.now_ms, *positions)
    site.crash()
    site.advance(18 * HOUR_MS)
    assert site.came()[-1][:5] == b"waits"
    assert site.timer.pending_count == 0 or site.now_ms // NEAR_MS == (site.now_ms + 1) // NEAR_MS
    site.advance(NEAR_MS)
    assert list(site.timer.positions()) == []


def test_a_disk_low_on_room_holds_up_what_is_due_and_loses_nothing(site):
    site.put(b"m", 1_000)
    site.broker.room.note(0, is_full=False, now_ms=site.now_ms)
    site.advance(2_000)
    assert site.came() == []
    assert site.wakes[-1] > site.now_ms
    site.broker.room.note(1 << 40, is_full=False, now_ms=site.now_ms)
    site.advance(1_000)
    assert site.came() == [b"m"]


def test_a_start_reads_nothing_but_the_near(site):
    for hour in range(1, 30):
        site.put(b"m", hour * HOUR_MS)
    site.crash()
    site.turn()
    assert len(site.timer._slots) == 0
    assert site.timer.pending_count == 29


@pytest.mark.parametrize("seed", range(3))
def test_what_is_lost_on_its_way_is_handed_on_again(tmp_path, seed):
    site = TimerSite(
        tmp_path / "late",
        make_engine=lambda store, is_sync: make_late(store, is_sync=is_sync, seed=seed, failures=0.3, away=0.3),
    )
    for number in range(30):
        site.put(b"%d" % number, 1_000 + 40 * number)
    for _ in range(60):
        site.advance(NEAR_MS // 10)
    assert set(site.came()) == {b"%d" % number for number in range(30)}
    site.store.close()


@pytest.mark.parametrize("seed", range(4))
def test_random_histories_lose_nothing_and_bring_nothing_early(tmp_path, seed):
    chance = random.Random(seed)
    site = TimerSite(tmp_path / "data")
    dues: dict[bytes, int] = {}
    flushed_twice = 0
    for step in range(50):
        what = chance.random()
        if what < 0.5:
            body = b"%d" % step
            scale = chance.choice([10, 1_000, NEAR_MS, HOUR_MS, DAY_MS, 100 * DAY_MS])
            dues[body] = site.put(body, chance.randrange(1, scale + 1), turn=chance.random() < 0.7)
        elif what < 0.85:
            site.now_ms += chance.randrange(chance.choice([20, 2_000, 2 * NEAR_MS, 2 * HOUR_MS, 3 * DAY_MS]))
            site.turn(flush=chance.random() < 0.8)
        elif what < 0.95:
            site.crash()
            flushed_twice += 1
        else:
            site.reopen()
        came = site.came()
        assert all(dues[body] <= site.now_ms for body in came)
    site.turn()
    came = site.came()
    assert set(came) == {body for body, due_ms in dues.items() if due_ms <= site.now_ms}
    site.now_ms = max(dues.values())
    site.crash()
    site.turn()
    assert set(site.came()) == set(dues)
    twice = len(site.came()) - len(dues)
    assert twice <= flushed_twice + 1
    site.store.close()
