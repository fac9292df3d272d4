from __future__ import annotations

import json

import pytest

from tests.support.commands import call_lmq, check_told, told_json, told_rows


@pytest.mark.slow
def test_policies_are_set_listed_and_deleted(running):
    admin = ("--admin", f"127.0.0.1:{running.port('admin')}")
    assert call_lmq("policy", "set", "p", "^a", '{"max-length": 5}', "--apply-to", "queues", *admin).exit_code == 0
    told = ('{"expires": 5}', "--operator", "--priority", "7")
    set_one = {"set": "p", "vhost": "/", "operator": True}
    assert told_json("policy", "set", "p", "^a", *told, *admin) == set_one
    assert call_lmq("policy", "set", "mirrored", "b", '{"ha-mode": "all"}', *admin).exit_code == 0
    head, *rows = told_rows("policy", "list", *admin)
    assert head == ["name", "vhost", "pattern", "for", "definition", "priority", "without effect"]
    assert sorted(rows) == [
        ["mirrored", "/", "b", "all", '{"ha-mode": "all"}', "0", "ha-mode"],
        ["p", "/", "^a", "queues", '{"max-length": 5}', "0", "-"],
    ]
    assert told_json("policy", "delete", "mirrored", *admin)["deleted"] == "mirrored"
    (found,) = json.loads(call_lmq("policy", "list", "--json", "--operator", "--vhost", "/", *admin).stdout)
    assert (found["definition"], found["priority"], found["apply-to"]) == ({"expires": 5}, 7, "all")
    check_told(call_lmq("policy", "set", "q", "(", "{}", *admin), "^lmq: Validation failed")
    check_told(call_lmq("policy", "set", "q", "a", "{", *admin), "^lmq: the definition is not JSON")
    for sort in ([], ["--operator"]):
        gone = {"deleted": "p", "vhost": "/", "operator": bool(sort)}
        assert told_json("policy", "delete", "p", *sort, *admin) == gone
    assert told_rows("policy", "list", *admin) == [head]
    check_told(call_lmq("policy", "delete", "p", *admin), "^lmq: no policy 'p' in vhost '/'$", code=4)
