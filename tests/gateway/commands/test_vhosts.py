from __future__ import annotations

import json

import pytest

from gateway.commands.vhosts import listed
from tests.support.commands import call_lmq, check_told, told_json


def test_listed_virtual_hosts_are_lines_with_their_limits():
    ours = {"queues": 3, "connections": 1, "limits": {}, "has_mqtt_topics": True}
    undefined = {"default_queue_type": "undefined"}
    first = {"name": "/", "description": "", "tags": [], **undefined, "lmq": ours}
    limited = {"queues": 0, "connections": 0, "limits": {"max-queues": 7}, "has_mqtt_topics": False}
    other = {
        "name": "v",
        "description": "of the plant",
        "tags": ["a", "b"],
        "default_queue_type": "quorum",
        "lmq": limited,
    }
    assert listed([first, other]) == [
        "/  connections: 1  queues: 3  with the topics of MQTT",
        "v  connections: 0  queues: 0 of 7  of type quorum  tags: a, b  of the plant",
    ]


@pytest.mark.slow
def test_virtual_hosts_are_made_listed_and_deleted(running):
    admin = ("--admin", f"127.0.0.1:{running.port('admin')}")
    told = ("--description", "of the plant", "--tag", "a", "--max-queues", "7", "--max-connections", "-1")
    assert call_lmq("vhost", "add", "of/plant", *told, *admin).exit_code == 0
    assert told_json("vhost", "add", "of/plant", *admin) == {"set": "of/plant"}
    first, other = call_lmq("vhost", "list", *admin).stdout.splitlines()
    assert first.startswith("/  connections: ")
    assert other == "of/plant  connections: 0  queues: 0 of 7  tags: a  of the plant"
    found = json.loads(call_lmq("vhost", "list", "--json", *admin).stdout)
    assert [one["name"] for one in found] == ["/", "of/plant"]
    told = "virtual host 'of/plant' goes with 0 queues, their messages and 0 connections; say --yes if it is meant"
    check_told(call_lmq("vhost", "delete", "of/plant", *admin), told)
    check_told(call_lmq("vhost", "delete", "/", *admin), "beside the topics of MQTT, which stay; say --yes")
    assert told_json("vhost", "delete", "of/plant", "--yes", *admin) == {"deleted": "of/plant"}
    check_told(call_lmq("vhost", "delete", "of/plant", *admin), "^lmq: no vhost 'of/plant'$", code=4)
