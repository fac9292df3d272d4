from __future__ import annotations

import pytest

from gateway.rocketmq.transactions.checks import SLICE, STALLS_MAX, Times
from gateway.rocketmq.transactions.rounds import STRETCHES_MAX
from tests.gateway.rocketmq.transactions.test_service import (
    INTERVAL_MS,
    TIMEOUT_MS,
    beat,
    checks,
    half,
    send_half,
    settle,
    wait,
)
from tests.support.rocketmq import send_frame


def test_stretches_stay_few_whatever_the_settings():
    for interval_ms, checks_max in ((30_000, 15), (1, 1), (3_600_000, 1_000)):
        gap_ms = Times(1, interval_ms, checks_max).gap_ms
        assert interval_ms * checks_max <= (gap_ms + 1) * STRETCHES_MAX


@pytest.mark.at_once(reason="counts what one turn asks about")
def test_more_than_a_slice_is_asked_about_over_several_turns(site, peer):
    beat(peer, "p")
    count = 3 * SLICE + 1
    peer.give(b"".join(send_frame(b"%d" % n, properties=half(f"k{n}")) for n in range(count)))
    settle(site)
    peer.take()
    site.now_ms += TIMEOUT_MS
    site.turn()
    first = len(checks(peer))
    assert 0 < first <= 2 * SLICE
    settle(site)
    assert first + len(checks(peer)) == count


def test_a_group_that_never_reads_holds_the_others_up_for_a_while_only(site, peer):
    other = site.connect()
    beat(peer, "p")
    beat(other, "q")
    peer.handler.transport.is_writable = False
    send_half(other, key="k1")
    send_half(other, key="k2", PGROUP="q")
    wait(site, TIMEOUT_MS)
    assert checks(other) == []
    for _ in range(STALLS_MAX):
        wait(site, 250)
    assert [check.ext["msgId"] for check in checks(other)] == ["k2"]
    assert site.broker.metrics.transactions.unasked == 1


def test_messages_that_come_one_by_one_are_asked_about_one_by_one(site, peer):
    beat(peer, "p")
    sender = site.connect()
    for number in range(5):
        send_half(sender, key=f"k{number}")
        wait(site, 2_000)
    wait(site, TIMEOUT_MS)
    assert [check.ext["msgId"] for check in checks(peer)] == [f"k{number}" for number in range(5)]
    for _ in range(8):
        wait(site, INTERVAL_MS // 8)
    assert sorted(check.ext["msgId"] for check in checks(peer)) == [f"k{number}" for number in range(5)]
