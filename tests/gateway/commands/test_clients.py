from __future__ import annotations

import json

import pytest

from tests.support.commands import call_lmq, check_told, stayed


@pytest.mark.slow
def test_clients_that_are_not_there_cannot_be_parted_with(running):
    admin = f"127.0.0.1:{running.port('admin')}"
    check_told(call_lmq("connection", "close", "999999", "--admin", admin), "^lmq: no connection '999999'$", code=4)
    with stayed(running, "parted"):
        lost = "its subscriptions and the messages that wait for the client"
        told = f"^lmq: this deletes session 'parted' with {lost}; add --yes"
        check_told(call_lmq("session", "end", "parted", "--admin", admin), told)
        ended = call_lmq("session", "end", "parted", "--yes", "--json", "--admin", admin)
        assert (ended.exit_code, json.loads(ended.stdout)) == (0, {"ended": "parted"})
    check_told(call_lmq("session", "end", "no/body", "--admin", admin), "no session 'no/body'", code=4)


@pytest.mark.slow
def test_the_subscriptions_of_a_client_are_shown_or_one_of_them(running):
    admin = ("--admin", f"127.0.0.1:{running.port('admin')}")
    with stayed(running, "subscriber", "plant/#", "jobs"):
        rows = [line.split() for line in call_lmq("subscriptions", "show", "subscriber", *admin).stdout.splitlines()]
        assert [row[:2] for row in rows if row and row[0] in {"plant/#", "jobs"}] == [["plant/#", "1"], ["jobs", "1"]]
        found = json.loads(call_lmq("subscriptions", "show", "subscriber", "--json", *admin).stdout)
        assert sorted(one["filter"] for one in found) == ["jobs", "plant/#"]
        one = json.loads(call_lmq("subscriptions", "show", "subscriber", "jobs", "--json", *admin).stdout)
        assert (one["client"], one["filter"], one["waiting"]) == ("subscriber", "jobs", 0)
        assert "plant/#" in call_lmq("subscriptions", "show", "subscriber", "plant/#", *admin).stdout
        missing = "^lmq: client 'subscriber' has no subscription 'plant'$"
        check_told(call_lmq("subscriptions", "show", "subscriber", "plant", *admin), missing, code=4)
    check_told(call_lmq("subscriptions", "show", "nobody", *admin), "^lmq: no session 'nobody'$", code=4)


@pytest.mark.slow
def test_connections_are_searched_by_client_too(running):
    admin = ("--admin", f"127.0.0.1:{running.port('admin')}")
    with stayed(running, "pump-17"):
        found = json.loads(call_lmq("connections", "--name", "PUMP-1", "--json", *admin).stdout)
        assert [one["lmq"]["client"] for one in found] == ["pump-17"]
        in_vhost = call_lmq("connections", "--name", "pump-1", "--vhost", "/", "--json", *admin)
        assert (in_vhost.exit_code, json.loads(in_vhost.stdout)) == (0, [])  # MQTT's are in none
        assert "pump-17" in call_lmq("connections", "--name", "pump", "--sort", "since", *admin).stdout
        assert json.loads(call_lmq("connections", "--name", "pump-18", "--json", *admin).stdout) == []
