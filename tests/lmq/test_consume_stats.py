from __future__ import annotations

import pytest

from lmq.consume_stats import ConsumeStats, Tally


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_what_is_past_its_span_counts_no_more():
    clock = Clock()
    tally = Tally(60.0, clock)
    tally.add(30, 0.5)
    clock.now_s += 30
    tally.add(30, 1.5)
    assert (tally.count, tally.rate, tally.took_ms) == (60, 1.0, 1000.0)
    clock.now_s += 30
    assert (tally.count, tally.took_ms) == (30, 1500.0)
    clock.now_s += 30
    assert (tally.count, tally.rate, tally.took_ms) == (0, 0.0, 0.0)


def test_a_tally_stays_small_however_much_is_counted():
    clock = Clock()
    tally = Tally(60.0, clock)
    for _ in range(10_000):
        tally.add(1)
        clock.now_s += 0.01
    assert len(tally._slots) <= 31
    assert tally.count == pytest.approx(6_000, rel=0.05)


def test_topics_are_told_by_rocketmqs_names():
    stats = ConsumeStats()
    stats.of("T").note_consumed(6, 3, 0.02)
    stats.of("T").pulled.add(9, 0.1)
    said = stats.of("T").describe()
    assert said["consumeFailedMsgs"] == 3
    assert said["consumeOKTPS"] == pytest.approx(0.1)
    assert said["pullRT"] == pytest.approx(100)
    assert stats.of("U").describe()["consumeRT"] == 0
