from __future__ import annotations

import json

import pytest

from tests.support.commands import at, call_lmq, check_told, told_json

pytestmark = pytest.mark.slow


def test_messages_that_wait_are_listed_shown_and_taken_back(running):
    admin = ("--admin", f"127.0.0.1:{running.port('admin')}")
    for number in range(3):
        assert call_lmq("publish", f"late/{number}", "x", "--delay", "600", *at(running, "mqtt")).exit_code == 0
    listed = call_lmq("delayed", "list", "--name", "late/", "--limit", "2", *admin).stdout
    assert "late/0" in listed
    assert "more: --after " in listed
    found = json.loads(call_lmq("delayed", "list", "--door", "mqtt", "--name", "late/", "--json", *admin).stdout)
    assert [one["to"] for one in found] == ["late/0", "late/1", "late/2"]
    told = call_lmq("delayed", "show", found[1]["id"], *admin).stdout
    assert "late/1" in told
    assert told_json("delayed", "cancel", found[1]["id"], *admin) == {"cancelled": found[1]["id"]}
    check_told(call_lmq("delayed", "cancel", found[1]["id"], *admin), "no message '.*' waits", code=4)
    left = json.loads(call_lmq("delayed", "list", "--name", "late/", "--json", *admin).stdout)
    assert [one["to"] for one in left] == ["late/0", "late/2"]
