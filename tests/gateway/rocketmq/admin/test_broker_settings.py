from __future__ import annotations

import time

import pytest

from gateway.rocketmq.errors import CommandRefusedError
from lmq.remoting.commands import Command
from tests.support.rocketmq_door import DoorSite, bodies_of
from tests.support.rocketmq_tools import Stranger, ask_tool


def test_settings_are_shown_by_their_names_at_official_brokers(peer):
    for code in (26, 319):
        answer = ask_tool(peer, code)
        lines = bytes(answer.body).decode().splitlines()
        assert {"brokerName=lmq", "listenPort=10911", "brokerIP1=127.0.0.1", "autoCreateTopicEnable=true"} <= set(lines)
        assert answer.ext["version"] == "0"


def test_what_can_change_while_the_broker_runs_changes_at_once(peer):
    assert ask_tool(peer, 25, b"# by hand\nautoCreateTopicEnable=false\nmaxMessageSize = 4\n").code == 0
    assert peer.send(b"x").code == 17
    assert b"maxMessageSize=4\n" in bytes(ask_tool(peer, 26).body)


def test_delay_levels_and_the_times_of_checks_can_change_too(site, peer):
    wanted = b"messageDelayLevel=2s 3s\ntransactionTimeOut=1\ntransactionCheckMax=2\ntransactionCheckInterval=3\n"
    assert ask_tool(peer, 25, wanted).code == 0
    assert set(wanted.splitlines()) <= set(bytes(ask_tool(peer, 26).body).splitlines())
    peer.send(b"later", properties="UNIQ_KEY\x01k\x02DELAY\x011\x02")
    site.now_ms += 1_999
    site.turn()
    assert peer.pull("T").code == 19
    site.now_ms += 1
    site.turn()
    assert bodies_of(peer.pull("T")) == [b"later"]


def test_how_long_messages_are_kept_can_change_too(tmp_path, engine_maker):
    site = DoorSite(tmp_path / "small", segment_bytes=1 << 16, make_engine=engine_maker)
    peer = site.connect()
    for _ in range(200):
        peer.send(b"x" * 1000)
        site.store.flush()  # a segment's index is written when it is on disk
        site.store.prepare()
    old_ms = site.now_ms + 3 * 3_600_000
    assert _retire(site, old_ms) == 0
    assert ask_tool(peer, 25, b"fileReservedTime=2\ndeleteWhen=04;16\n").code == 0
    assert {b"fileReservedTime=2", b"deleteWhen=04;16"} <= set(bytes(ask_tool(peer, 26).body).splitlines())
    assert _retire(site, old_ms) > 1
    assert ask_tool(peer, 25, b"deleteWhen=\n").code == 0
    assert b"deleteWhen=" in bytes(ask_tool(peer, 26).body).splitlines()
    site.close()


def test_what_is_old_goes_in_the_hours_that_a_tool_says_and_not_before(tmp_path, engine_maker):
    site = DoorSite(tmp_path / "small", segment_bytes=1 << 16, make_engine=engine_maker)
    peer = site.connect()
    for _ in range(200):
        peer.send(b"x" * 1000)
        site.store.flush()
        site.store.prepare()
    old_ms = site.now_ms + 3 * 3_600_000
    hour = time.localtime(old_ms / 1_000).tm_hour
    for wanted, goes in (((hour + 12) % 24, False), (hour, True)):
        assert ask_tool(peer, 25, b"fileReservedTime=2\ndeleteWhen=%02d\n" % wanted).code == 0
        site.retention.look(old_ms, is_low=False)
        assert (_retire(site, old_ms) > 1) == goes
    site.close()


def _retire(site, now_ms):
    count = 0
    for _ in range(2):
        count += site.broker.retire(now_ms)
        while site.engine.step(now_ms):
            pass
    return count


@pytest.mark.parametrize(
    ("body", "code", "remark"),
    [
        (b"brokerName=other", 16, "brokerName cannot be changed while the broker runs"),
        (b"maxMessageSize=8\nstorePathRootDir=x", 16, "storePathRootDir cannot be changed"),
        (b"maxMessageSize=8\nfileReservedTime=0", 29, "age_hours must be at least 1"),
        (b"deleteWhen=04;24", 29, "delete_hours.1 must be at most 23"),
        (b"maxMessageSize=none", 29, "body_bytes_max must be a whole number"),
        (b"messageDelayLevel=1x", 29, "delay_levels '1x' is not a time from 1s to 400d"),
        (b"defaultTopicQueueNums=0", 29, "auto_topic_queues must be at least 1"),
        (b"", 1, "string2Properties error"),
        (b"no line", 1, "string2Properties error"),
        (b"a=b\n" * 20_000, 1, "the body has more than"),
        (b"\xff=\xff", 16, "cannot be changed"),
    ],
)
def test_what_cannot_change_is_refused_with_all_that_came_with_it(peer, body, code, remark):
    before = bytes(ask_tool(peer, 26).body)
    answer = ask_tool(peer, 25, body)
    assert answer.code == code
    assert remark in answer.remark
    assert bytes(ask_tool(peer, 26).body) == before


def test_who_may_not_configure_sees_and_changes_no_settings(site):
    for code in (25, 26, 318, 319, 27, 306, 316, 329):
        with pytest.raises(CommandRefusedError) as caught:
            site.door.tools.ask(Command(code, body=b"maxMessageSize=4"), Stranger(), "h:1", site.now_ms)
        assert caught.value.code == 16
