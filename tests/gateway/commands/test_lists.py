from __future__ import annotations

import json

import paho.mqtt.publish
import pytest

from gateway.commands.client import AdminClient
from gateway.commands.lists import KINDS
from tests.support.commands import at, call_lmq, check_told

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_everything_is_listed_as_a_table_and_as_json(running, kind):
    admin = f"127.0.0.1:{running.port('admin')}"
    result = call_lmq(kind, "list", "--admin", admin)
    assert result.exit_code == 0, result.output
    columns = next(one.columns for one in KINDS if one.name == kind)
    assert result.stdout.split()[0] == columns[0].title
    found = json.loads(call_lmq(kind, "list", "--admin", admin, "--json", "--limit", "3").stdout)
    assert isinstance(found, list)


def test_things_are_searched_sorted_and_shown(running):
    admin = f"127.0.0.1:{running.port('admin')}"
    table = call_lmq("exchanges", "list", "--admin", admin, "--name", "amq.", "--reverse", "--limit", "2").stdout
    assert "amq.topic" in table
    assert table.rstrip().endswith("2 of 6")
    result = call_lmq("sessions", "show", "nobody", "--admin", admin)
    assert (result.exit_code, result.stderr) == (4, "lmq: no session 'nobody'\n")


def test_a_kind_without_a_command_is_listed(running):
    admin = ("--admin", f"127.0.0.1:{running.port('admin')}")
    assert call_lmq("exchanges", *admin).stdout == call_lmq("exchanges", "list", *admin).stdout
    found = json.loads(call_lmq("exchanges", "--json", "--limit", "1", *admin).stdout)
    assert len(found) == 1
    assert call_lmq("vhost", *admin).stdout == call_lmq("vhost", "list", *admin).stdout
    assert "show" in call_lmq("queues", "--help").stdout
    assert call_lmq("queues", "lst", *admin).exit_code == 2


def test_lists_are_of_one_virtual_host_where_their_things_are_in_one(running):
    admin = ("--admin", f"127.0.0.1:{running.port('admin')}")
    assert call_lmq("vhost", "add", "lists/own", *admin).exit_code == 0
    client = AdminClient(admin[1])
    for vhost in ("%2F", "lists%2Fown"):
        client.send("PUT", f"/api/queues/{vhost}/both-have-it", {"durable": True})
    rows = json.loads(call_lmq("queues", "list", "--vhost", "lists/own", "--json", *admin).stdout)
    assert [(row["vhost"], row["name"]) for row in rows] == [("lists/own", "both-have-it")]
    for kind in KINDS:
        result = call_lmq(kind.name, "list", "--vhost", "lists/own", "--json", *admin)
        assert result.exit_code == (0 if kind.in_vhost else 2), result.output
        if kind.name in {"exchanges", "bindings"}:
            assert {row["vhost"] for row in json.loads(result.stdout)} == {"lists/own"}
    check_told(call_lmq("queues", "list", "--vhost", "none", *admin), "^lmq: no vhost 'none'$", code=4)
    for path in ("queues/%2F/both-have-it", "vhosts/lists%2Fown"):
        client.send("DELETE", f"/api/{path}")


def test_a_list_is_sorted_by_what_stands_above_a_column_and_by_nothing_unknown(running):
    admin = ("--admin", f"127.0.0.1:{running.port('admin')}")
    for topic, size in (("sorted/a", 3), ("sorted/b", 1), ("sorted/c", 2)):
        paho.mqtt.publish.single(topic, "x" * size, qos=1, retain=True, port=running.port("mqtt"))
    found = call_lmq("retained", "list", *admin, "--name", "sorted/", "--sort", "bytes", "--json").stdout
    assert [row["topic"] for row in json.loads(found)] == ["sorted/b", "sorted/c", "sorted/a"]
    check_told(
        call_lmq("exchanges", "list", *admin, "--sort", "bogus"),
        "^lmq: --sort bogus: exchanges have no such field; columns are name, vhost, .*, arguments, in/s, out/s$",
    )


def test_a_retained_message_is_shown_without_a_login_of_ones_own(running):
    paho.mqtt.publish.single("shown/here", "kept", qos=1, retain=True, port=running.port("mqtt"))
    result = call_lmq("retained", "show", "shown/here", "--admin", f"127.0.0.1:{running.port('admin')}")
    assert result.exit_code == 0, result.stderr
    assert "shown/here" in result.stdout


def test_dead_letters_come_before_queues_that_have_none_and_many_senders_are_counted(running):
    admin = f"127.0.0.1:{running.port('admin')}"
    client = AdminClient(admin)
    for grave in ("a-grave", "z-grave"):
        client.send("PUT", f"/api/queues/%2F/{grave}", {"durable": True})
    for number in range(25):  # more than the API names
        arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "a-grave"}
        client.send("PUT", f"/api/queues/%2F/part{number}", {"durable": True, "arguments": arguments})
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "z-grave", "x-max-length": 0}
    client.send("PUT", "/api/queues/%2F/whole", {"durable": True, "arguments": arguments})
    assert call_lmq("publish", "whole", "x", *at(running, "amqp")).exit_code == 0
    while not client.get("/api/queues/%2F/z-grave")["messages"]:
        pass
    rows = [line.split() for line in call_lmq("deadletters", "--name", "grave", "--admin", admin).stdout.splitlines()]
    first, second = (row for row in rows if row and row[0].endswith("grave"))
    assert (first[0], first[3], second[0], second[3]) == ("z-grave", "1", "a-grave", "0")
    assert " ".join(second[5:11]) == "part0, part1, part2, and 22 more"
    turned = call_lmq("deadletters", "--name", "grave", "--reverse", "--json", "--admin", admin).stdout
    assert [one["name"] for one in json.loads(turned)] == ["a-grave", "z-grave"]
