from __future__ import annotations

import json

import pytest

from tests.support.commands import call_lmq, check_told, told_json, told_rows


@pytest.mark.slow
def test_virtual_hosts_are_made_listed_and_deleted(running):
    admin = ("--admin", f"127.0.0.1:{running.port('admin')}")
    told = ("--description", "of the plant", "--tag", "a", "--max-queues", "7", "--max-connections", "-1")
    assert call_lmq("vhost", "add", "of/plant", *told, *admin).exit_code == 0
    assert told_json("vhost", "add", "of/plant", *admin) == {"set": "of/plant"}
    assert told_json("vhost", "add", "quorums", "--default-queue-type", "quorum", *admin) == {"set": "quorums"}
    head, first, *others = told_rows("vhost", "list", *admin)
    assert head == ["name", "connections", "connections max", "queues", "queues max", *head[5:]]
    assert head[5:] == ["in/s", "out/s", "ack/s", "MQTT's topics", "type of queues", "tags", "description"]
    assert (first[0], first[8:]) == ("/", ["yes", "-", "-", first[-1]])
    assert others == [
        ["of/plant", "0", "-", "0", "7", "0.0", "0.0", "0.0", "no", "-", "a", "of the plant"],
        ["quorums", "0", "-", "0", "-", "0.0", "0.0", "0.0", "no", "quorum", "-", "-"],
    ]
    assert told_json("vhost", "delete", "quorums", "--yes", *admin) == {"deleted": "quorums"}
    found = json.loads(call_lmq("vhost", "list", "--json", *admin).stdout)
    assert [one["name"] for one in found] == ["/", "of/plant"]
    told = "this deletes virtual host 'of/plant' with 0 queues, their messages and 0 connections; add --yes to do it"
    check_told(call_lmq("vhost", "delete", "of/plant", *admin), told)
    check_told(call_lmq("vhost", "delete", "/", *admin), "the topics of MQTT stay; add --yes")
    assert told_json("vhost", "delete", "of/plant", "--yes", *admin) == {"deleted": "of/plant"}
    check_told(call_lmq("vhost", "delete", "of/plant", *admin), "^lmq: no vhost 'of/plant'$", code=4)
