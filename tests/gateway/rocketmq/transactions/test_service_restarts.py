"""Transactions over restarts, kills and retention."""

from __future__ import annotations

import pytest

from gateway.settings.models import RocketmqSettings
from lmq.remoting.commands import Command
from lmq.remoting.message_codec import decode_stored
from tests.support.rocketmq import request_frame
from tests.support.rocketmq_door import DoorSite, Peer, bodies_of
from tests.support.rocketmq_transactions import (
    COMMIT,
    INTERVAL_MS,
    ROLLBACK,
    TIMEOUT_MS,
    beat,
    checks,
    end,
    end_ext,
    killed,
    send_half,
    settle,
    wait,
)

SEGMENT_BYTES = 64 * 1024

AGE_MS = 1_000 * 3_600_000


@pytest.mark.parametrize("is_clean", [True, False])
def test_transactions_outlive_the_process(tmp_path, engine_maker, is_clean):
    site = DoorSite(tmp_path / "d", make_engine=engine_maker)
    peer = site.connect()
    committed, rolled_back, open_one = [send_half(peer, b"%d" % n, key=f"k{n}") for n in range(3)]
    end(peer, committed)
    end(peer, rolled_back, ROLLBACK)
    if is_clean:
        site.close()
        site = DoorSite(tmp_path / "d", make_engine=engine_maker)
    else:
        old, site = site, killed(tmp_path / "d", tmp_path / "e")
        old.close()
    peer = site.connect()
    beat(peer, "p")
    wait(site, TIMEOUT_MS)
    assert [check.ext["msgId"] for check in checks(peer)] == ["k2"]
    assert end(peer, committed).remark == end(peer, rolled_back).remark == "the transaction was ended before"
    assert end(peer, open_one).code == 0
    assert bodies_of(peer.pull("T")) == [b"0", b"2"]
    site.close()


def test_checks_are_counted_over_restarts(tmp_path, engine_maker):
    site = DoorSite(tmp_path / "d", RocketmqSettings(transaction_checks_max=2), make_engine=engine_maker)
    send_half(site.connect())
    wait(site, TIMEOUT_MS)
    now_ms = site.now_ms
    for number in range(2):
        old, site = (
            site,
            killed(tmp_path / ("d" if not number else "d0"), tmp_path / f"d{number}", transaction_checks_max=2),
        )
        old.close()
        site.now_ms = now_ms = now_ms + INTERVAL_MS
        settle(site)
    assert bodies_of(site.connect().pull("TRANS_CHECK_MAX_TIME_TOPIC")) == [b"paid"]
    site.close()


def test_an_end_that_comes_while_the_gateway_still_reads_is_done_after_it(tmp_path, engine_maker):
    site = DoorSite(tmp_path / "d", make_engine=engine_maker)
    peer = site.connect()
    sent = [send_half(peer, b"%d" % n, key=f"k{n}") for n in range(3)]
    end(peer, sent[0])
    site.close()
    site = DoorSite(tmp_path / "d", make_engine=engine_maker)
    peer = site.connect()
    peer.give(b"".join(request_frame(37, opaque=n, **end_ext(one)) for n, one in enumerate(sent)))
    settle(site)
    assert sorted(answer.opaque for answer in peer.take()) == [0, 1, 2]
    assert bodies_of(peer.pull("T")) == [b"0", b"1", b"2"]
    site.close()


def test_retention_leaves_what_is_pending_and_lets_go_of_what_is_done(tmp_path, engine_maker):
    site = DoorSite(tmp_path / "d", make_engine=engine_maker)
    peer = site.connect()
    done, waiting = send_half(peer, key="k1"), send_half(peer, key="k2")
    end(peer, done)
    assert dict(site.door.transactions.positions()) == {
        site.broker.find_queue(b"RMQ_SYS_TRANS_HALF_TOPIC/0"): 1,
        site.broker.find_queue(b"RMQ_SYS_TRANS_OP_HALF_TOPIC/0"): 0,
    }
    end(peer, waiting)
    assert sorted(dict(site.door.transactions.positions()).values()) == [2, 2]
    site.close()


def fill(peer: Peer, count: int) -> None:
    """Fill some segments of the log with messages that nobody needs, in a topic of their own."""
    for _ in range(count):
        assert peer.send(b"x" * 16_384, topic="other").code == 0


def retire(site: DoorSite) -> None:
    """Let retention take all that is needed by nobody: by its age, all is due but the newest segment."""
    for _ in range(3):  # what is given back in the middle of the log takes more than one round
        for _ in range(20):
            site.store.prepare()
        site.broker.retire(site.now_ms + AGE_MS)
        settle(site)


def view(peer: Peer, sent: Command) -> int:
    """Return the code that asking for a half message by its place gives."""
    return peer.ask(33, topic="T", offset=end_ext(sent)["commitLogOffset"]).code


@pytest.mark.parametrize("how", [COMMIT, ROLLBACK])
def test_segments_stay_while_a_half_message_in_them_is_pending_and_go_after_its_end(tmp_path, engine_maker, how):
    site = DoorSite(tmp_path / "d", segment_bytes=SEGMENT_BYTES, make_engine=engine_maker)
    peer = site.connect()
    fill(peer, 8)
    before, waiting, after = (send_half(peer, key, key=key.decode()) for key in (b"before", b"waiting", b"after"))
    end(peer, before)
    end(peer, after)
    fill(peer, 16)
    retire(site)
    assert site.broker.min_offset(site.broker.find_queue(b"other/0")) > 0
    assert view(peer, waiting) == 0
    site.close()
    site = DoorSite(tmp_path / "d", segment_bytes=SEGMENT_BYTES, make_engine=engine_maker)
    peer = site.connect()
    beat(peer, "p")
    settle(site)
    retire(site)
    wait(site, TIMEOUT_MS)
    (check,) = checks(peer)
    assert (check.ext["msgId"], decode_stored(bytes(check.body)).body) == ("waiting", b"waiting")
    assert end(peer, after).remark == "the transaction was ended before"
    assert end(peer, waiting, how).remark is None
    assert bodies_of(peer.pull("T", 2)) == ([b"waiting"] if how == COMMIT else [])
    fill(peer, 8)
    retire(site)
    assert view(peer, waiting) != 0
    assert site.store.log_bytes() <= 2 * SEGMENT_BYTES
    wait(site, 2 * INTERVAL_MS)
    assert checks(peer) == []
    site.close()
