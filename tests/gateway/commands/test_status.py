from __future__ import annotations

import json
import time

import pytest

from gateway.commands.status import facts_of, rows_of
from tests.support.commands import START_MAX_S, call_lmq, check_told, processor_s

NUMBERS = ("uptime_ms", "disk_free_bytes", "disk_free_bytes_min", "log_bytes", "memory_bytes", "memory_bytes_max")


def test_rates_are_of_what_came_since_the_last_look():
    doors = {"mqtt": {"messages_in": 30, "messages_out": 5}}
    assert "in_rate" not in rows_of(doors)[0]
    (row,) = rows_of(doors, {"mqtt": {"messages_in": 10, "messages_out": 5}}, 2.0)
    assert (row["door"], row["in_rate"], row["out_rate"]) == ("mqtt", 10, 0)


@pytest.mark.parametrize(
    ("memory", "most", "told"),
    [
        ("ok", 0, "ok, 70 MiB (no limit)"),
        ("ok", 100 << 20, "ok, 70 MiB of 100 MiB"),
        ("low", 60 << 20, "low, 70 MiB of 60 MiB (limits.memory_bytes_max)"),
    ],
)
def test_memory_is_told_with_its_limit_where_there_is_one(memory, most, told):
    names = ("version", "disk", "alarms", "messages_stored", "light_queues")
    numbers = dict.fromkeys(("uptime_ms", "disk_free_bytes", "disk_free_bytes_min", "log_bytes"), 1)
    numbers |= {"memory_bytes": 70 << 20, "memory_bytes_max": most}
    ours = {**dict.fromkeys(names, ""), **numbers, "is_ready": True, "memory": memory}
    totals = {"messages_ready": 0, "messages_unacknowledged": 0}
    assert facts_of({"lmq": ours, "queue_totals": totals, "object_totals": {"queues": 0}})["memory"] == told


@pytest.mark.parametrize(
    ("disk", "told"),
    [
        ("ok", "ok, 3 MiB free, the log has 2 MiB"),
        ("low", "low, 3 MiB free, 5 MiB have to be (store.disk_free_bytes_min), the log has 2 MiB"),
    ],
)
def test_how_much_room_is_wanted_is_told_where_the_disk_is_low(disk, told):
    names = ("version", "memory", "alarms", "messages_stored", "light_queues", "is_ready")
    room = {"disk_free_bytes": 3 << 20, "disk_free_bytes_min": 5 << 20, "log_bytes": 2 << 20}
    ours = {**dict.fromkeys(names, ""), **dict.fromkeys(NUMBERS, 1), **room, "disk": disk}
    totals = {"messages_ready": 0, "messages_unacknowledged": 0}
    assert facts_of({"lmq": ours, "queue_totals": totals, "object_totals": {"queues": 0}})["disk"] == told


def test_who_sees_its_own_virtual_hosts_alone_is_shown_what_they_have():
    ours = {"version": "1", "is_ready": True, "uptime_ms": 0, "disk": "ok", "memory": "ok", "alarms": []}
    totals = {"messages_ready": 3, "messages_unacknowledged": 1}
    shown = facts_of({"lmq": ours, "queue_totals": totals, "object_totals": {"queues": 2}})
    assert (shown["AMQP queues"], shown["ready"], shown["state"]) == (2, 3, "ready")
    assert "messages stored" not in shown


def test_certificates_that_end_are_told_with_their_files():
    numbers = dict.fromkeys(NUMBERS, 1)
    names = ("version", "disk", "memory", "alarms", "messages_stored", "light_queues", "is_ready")
    totals = {"messages_ready": 0, "messages_unacknowledged": 0}
    found = {"lmq": {**dict.fromkeys(names, ""), **numbers}, "queue_totals": totals, "object_totals": {"queues": 0}}
    assert "certificates" not in facts_of(found)
    now_ms, day_ms = time.time() * 1_000, 86_400_000
    found["lmq"]["certificates_ending"] = [
        {"file": "a.pem", "listener": "mqtts", "address": "0.0.0.0:8883", "expires_at_ms": now_ms - 3 * day_ms},
        {"file": "b.pem", "listener": "amqps", "address": "0.0.0.0:5671", "expires_at_ms": now_ms + 5.01 * day_ms},
    ]
    assert facts_of(found)["certificates"] == [
        "a.pem of mqtts 0.0.0.0:8883 expired 3.0 days ago",
        "b.pem of amqps 0.0.0.0:5671 expires in 5.0 days",
    ]


@pytest.mark.slow
def test_the_whole_gateway_is_shown_once_or_live(running):
    admin = f"127.0.0.1:{running.port('admin')}"
    result = call_lmq("status", "--admin", admin)
    assert "state            ready" in result.stdout
    assert "rocketmq" in result.stdout
    assert json.loads(call_lmq("status", "--json", "--admin", admin).stdout)["lmq"]["is_ready"]
    result = call_lmq("top", "--count", "2", "--every", "0.2", "--admin", admin)
    assert result.exit_code == 0, result.output
    assert "in/s" in result.stdout
    assert result.stdout.count("messages in") == 2  # no terminal: one screen after the other
    result = call_lmq("top", "--count", "2", "--every", "0.2", "--json", "--admin", admin)
    first, second = (json.loads(line) for line in result.stdout.splitlines())
    assert {row["door"] for row in first["doors"]} >= {"mqtt", "amqp", "rocketmq"}
    assert "in_rate" in second["doors"][0]
    assert isinstance(second["queues"], list)


@pytest.mark.slow
def test_another_door_is_no_admin_api(running):
    amqp = f"127.0.0.1:{running.port('amqp')}"
    check_told(call_lmq("status", "--admin", amqp), f"^lmq: that is no admin API at {amqp}: it speaks AMQP$", code=6)


@pytest.mark.slow
@pytest.mark.parametrize("words", ["status", "queues list", "explain topic x/y"])
def test_questions_take_less_than_half_a_second_of_processor(running, words):
    assert processor_s(*words.split(), "--admin", f"127.0.0.1:{running.port('admin')}") < START_MAX_S
