from __future__ import annotations

from core.schedule.slots import FAR_MS, NEAR_SLOTS, ROLL_AHEAD_MS
from tests.support.timer import TimerSite


def test_a_day_is_spread_before_it_begins_and_what_it_held_is_let_go_of(tmp_path):
    site = TimerSite(tmp_path / "data")
    due_ms = site.put(b"m", 5 * FAR_MS)
    day_ms = due_ms // FAR_MS * FAR_MS
    site.now_ms = day_ms - ROLL_AHEAD_MS - 1
    site.turn()
    assert all(queue_id >= NEAR_SLOTS for queue_id in site.timer._places)
    site.advance(20_000)
    assert all(queue_id < NEAR_SLOTS for queue_id in site.timer._places)
    site.crash()
    site.now_ms = due_ms - 1
    site.turn()
    assert site.came() == []
    site.advance(1)
    assert site.came() == [b"m"]
    site.store.close()


def test_many_of_one_day_are_spread_a_batch_a_turn(tmp_path):
    site = TimerSite(tmp_path / "data")
    for number in range(600):
        site.put(b"%d" % number, 5 * FAR_MS + number, turn=False)
    site.advance(4 * FAR_MS)
    site.crash()
    site.advance(FAR_MS + 600)
    assert site.came() == [b"%d" % number for number in range(600)]
    site.store.close()
