from __future__ import annotations

import json

from tests.support.rocketmq_tools import ask_tool, join


def test_producers_are_told_by_their_group(site, peer):
    join(site, "c1")
    join(site, "c2").close()
    said = json.loads(bytes(ask_tool(peer, 204, producerGroup="p").body))
    assert [one["clientId"] for one in said["connectionSet"]] == ["c1"]
    missing = ask_tool(peer, 204, producerGroup="other")
    assert (missing.code, missing.remark) == (1, "the producer group[other] not exist")
    said = json.loads(bytes(ask_tool(peer, 328).body))["data"]
    assert [one["clientId"] for one in said["p"]] == ["c1"]
