from __future__ import annotations

import json

import pytest

from tests.support.commands import call_lmq, check_told, stayed


@pytest.mark.slow
def test_a_group_is_sent_to_a_place_that_is_there(running):
    admin = f"127.0.0.1:{running.port('admin')}"
    result = call_lmq("group", "reset", "billing", "ORDERS/0", "--admin", admin)
    check_told(result, "give offset or at_ms")
    result = call_lmq("group", "reset", "billing", "ORDERS/0", "--offset", "0", "--admin", admin)
    check_told(result, "no light queue 'ORDERS/0'", code=4)


@pytest.mark.slow
def test_a_group_is_shown_with_its_members_and_queues(running):
    admin = ("--admin", f"127.0.0.1:{running.port('admin')}")
    with stayed(running, "shown-member", "$share/shown/jobs/#"):
        rows = [line.split() for line in call_lmq("groups", "show", "shown", *admin).stdout.splitlines()]
        assert ["member_names", "shown-member"] in rows
        assert ["jobs/#", "0", "0", "1", "0", "%LMQ%mqtt%jobs%|h"] in rows
        found = json.loads(call_lmq("groups", "show", "shown", "--door", "mqtt", "--json", *admin).stdout)
        assert (found["member_names"], found["queue_details"][0]["queue"]) == (["shown-member"], "jobs/#")
        missing = call_lmq("groups", "show", "shown", "--door", "rocketmq", *admin)
        check_told(missing, "^lmq: no group 'shown' at the door rocketmq$", code=4)
        assert call_lmq("groups", "show", "shown", "--door", "amqp", *admin).exit_code == 2
    check_told(call_lmq("groups", "show", "none", *admin), "^lmq: no group 'none'$", code=4)
