from __future__ import annotations

import json

import pytest

from gateway.rocketmq.admin import kv_config
from gateway.rocketmq.errors import CommandRefusedError
from lmq.remoting.commands import Command
from tests.support.rocketmq_door import DoorSite
from tests.support.rocketmq_tools import Stranger, ask_tool


def put(peer, value="v", key="k", namespace="ns"):
    return ask_tool(peer, 100, namespace=namespace, key=key, value=value)


def test_values_are_kept_by_namespace_and_key(tmp_path, engine_maker):
    site = DoorSite(tmp_path / "d", make_engine=engine_maker)
    assert put(site.connect(), "größer").code == 0
    site.close()
    site = DoorSite(tmp_path / "d", make_engine=engine_maker)
    peer = site.connect()
    assert ask_tool(peer, 101, namespace="ns", key="k").ext["value"] == "größer"
    put(peer, key="l")
    put(peer, key="k", namespace="other")
    assert json.loads(bytes(ask_tool(peer, 219, namespace="ns").body)) == {"table": {"k": "größer", "l": "v"}}
    assert ask_tool(peer, 102, namespace="ns", key="k").code == 0
    missing = ask_tool(peer, 101, namespace="ns", key="k")
    assert (missing.code, missing.remark) == (22, "No config item, Namespace: ns Key: k")
    assert ask_tool(peer, 219, namespace="none").code == 22
    site.close()


def test_the_route_of_an_ordered_topic_has_its_queues(peer):
    peer.send(b"x")
    assert b"orderTopicConf" not in bytes(peer.ask(105, topic="T").body)
    put(peer, "lmq:4", key="T", namespace="ORDER_TOPIC_CONFIG")
    assert json.loads(bytes(peer.ask(105, topic="T").body))["orderTopicConf"] == "lmq:4"


@pytest.mark.parametrize(
    "ext",
    [
        {"namespace": "", "key": "k", "value": "v"},
        {"namespace": "n", "key": "", "value": "v"},
        {"namespace": "n\0", "key": "k", "value": "v"},
        {"namespace": "n" * 256, "key": "k", "value": "v"},
        {"namespace": "n", "key": "k", "value": "v" * 65_537},
    ],
)
def test_impossible_values_are_refused(peer, ext):
    assert ask_tool(peer, 100, **ext).code == 29


def test_there_are_only_so_many_values_and_nobody_sets_one_without_the_right(site, peer, monkeypatch):
    monkeypatch.setattr(kv_config, "ENTRIES_MAX", 2)
    assert [put(peer, key=key).code for key in "abca"] == [0, 0, 2, 0]
    request = Command(100, ext={"namespace": "n", "key": "k", "value": "v"})
    for code in (100, 102):
        request.code = code
        with pytest.raises(CommandRefusedError) as caught:
            site.door.tools.ask(request, Stranger(), "h:1", site.now_ms)
        assert caught.value.code == 16
