from __future__ import annotations

import json

import paho.mqtt.publish
import pytest

from gateway.commands.lists import KINDS
from tests.support.commands import call_lmq, check_told

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


def test_a_list_is_sorted_by_what_stands_above_a_column_and_by_nothing_unknown(running):
    admin = ("--admin", f"127.0.0.1:{running.port('admin')}")
    for topic, size in (("sorted/a", 3), ("sorted/b", 1), ("sorted/c", 2)):
        paho.mqtt.publish.single(topic, "x" * size, qos=1, retain=True, port=running.port("mqtt"))
    found = call_lmq("retained", "list", *admin, "--name", "sorted/", "--sort", "bytes", "--json").stdout
    assert [row["topic"] for row in json.loads(found)] == ["sorted/b", "sorted/c", "sorted/a"]
    check_told(
        call_lmq("exchanges", "list", *admin, "--sort", "bogus"),
        "^lmq: --sort bogus: exchanges have no such field; columns are name, vhost, type, durable, arguments$",
    )


def test_a_retained_message_is_shown_without_a_login_of_ones_own(running):
    paho.mqtt.publish.single("shown/here", "kept", qos=1, retain=True, port=running.port("mqtt"))
    result = call_lmq("retained", "show", "shown/here", "--admin", f"127.0.0.1:{running.port('admin')}")
    assert result.exit_code == 0, result.stderr
    assert "shown/here" in result.stdout
