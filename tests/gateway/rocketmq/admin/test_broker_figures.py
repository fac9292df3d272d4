from __future__ import annotations

import json

from tests.support.rocketmq_tools import ask_tool


def test_the_broker_tells_how_it_is(site, peer):
    stored_ms = site.now_ms
    peer.send(b"four")
    site.now_ms += 90_061_000
    table = json.loads(bytes(ask_tool(peer, 28).body))["table"]
    assert all(isinstance(value, str) for value in table.values())
    assert (table["brokerVersionDesc"], table["brokerActive"]) == ("V5_4_0", "true")
    assert (table["msgPutTotalTodayNow"], table["putMessageAverageSize"]) == ("1", "4.0")
    assert table["earliestMessageTimeStamp"] == str(stored_ms)
    assert len(table["putTps"].split(" ")) == 3
    assert float(table["commitLogDiskRatio"]) <= 1


def test_nobody_copies_the_log(site, peer):
    peer.send(b"four")
    said = json.loads(bytes(ask_tool(peer, 907).body))
    assert (said["master"], said["inSyncSlaveNums"], said["haConnectionInfo"]) == (True, 0, [])
    assert said["masterCommitLogMaxOffset"] == site.broker.end_place


def test_rates_are_of_what_came_since_the_last_looks(site, peer):
    figures = site.door.tools.figures
    figures.note(site.now_ms)
    for _ in range(20):
        peer.send(b"x")
    site.now_ms += 10_000
    table = json.loads(bytes(ask_tool(peer, 28).body))["table"]
    assert table["putTps"] == "2.00 2.00 2.00"
    assert table["runtime"] == "[ 0 days, 0 hours, 0 minutes, 10 seconds ]"
