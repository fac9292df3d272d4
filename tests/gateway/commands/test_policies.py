from __future__ import annotations

import json

import pytest

from gateway.commands.policies import listed
from tests.support.commands import call_lmq, check_told, told_json


def test_listed_policies_are_lines_with_what_has_no_effect():
    said = {"vhost": "/", "name": "p", "pattern": "^a", "apply-to": "queues", "priority": 3}
    plain = {**said, "definition": {"max-length": 5}, "lmq": {"without_effect": []}}
    mirrored = {**said, "definition": {"ha-mode": "all"}, "lmq": {"without_effect": ["ha-mode"]}}
    assert listed([plain, mirrored]) == [
        '/  p  ^a  for queues  {"max-length": 5}  priority 3',
        '/  p  ^a  for queues  {"ha-mode": "all"}  priority 3  without effect: ha-mode',
    ]


@pytest.mark.slow
def test_policies_are_set_listed_and_deleted(running):
    admin = ("--admin", f"127.0.0.1:{running.port('admin')}")
    assert call_lmq("policy", "set", "p", "^a", '{"max-length": 5}', "--apply-to", "queues", *admin).exit_code == 0
    told = ('{"expires": 5}', "--operator", "--priority", "7")
    set_one = {"set": "p", "vhost": "/", "operator": True}
    assert told_json("policy", "set", "p", "^a", *told, *admin) == set_one
    assert call_lmq("policy", "list", *admin).stdout == '/  p  ^a  for queues  {"max-length": 5}  priority 0\n'
    (found,) = json.loads(call_lmq("policy", "list", "--json", "--operator", "--vhost", "/", *admin).stdout)
    assert (found["definition"], found["priority"], found["apply-to"]) == ({"expires": 5}, 7, "all")
    check_told(call_lmq("policy", "set", "q", "(", "{}", *admin), "^lmq: Validation failed")
    check_told(call_lmq("policy", "set", "q", "a", "{", *admin), "^lmq: the definition is no JSON")
    for sort in ([], ["--operator"]):
        gone = {"deleted": "p", "vhost": "/", "operator": bool(sort)}
        assert told_json("policy", "delete", "p", *sort, *admin) == gone
    assert call_lmq("policy", "list", *admin).stdout == ""
    check_told(call_lmq("policy", "delete", "p", *admin), "^lmq: no policy 'p' in vhost '/'$", code=4)
