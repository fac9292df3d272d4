from __future__ import annotations

import json

import pytest

from tests.support.commands import at, call_lmq, check_told, told_json

NOBODY = 3  # the exit code where a message is stored and reaches nobody


def _shown(running, topic, *options):
    """Return what was published to a topic of MQTT, from the log."""
    told = call_lmq("subscribe", topic, "--from", "first", "--idle", "1", "--json", *options, *at(running, "mqtt"))
    return [json.loads(line) for line in told.stdout.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("door", ["mqtt", "amqp", "rocketmq"])
def test_a_message_goes_through_each_door_with_its_headers(running, door):
    target = {"mqtt": "sent/mqtt", "amqp": "sent.amqp", "rocketmq": "sent/rocketmq"}[door]
    exchange = ("--exchange", "amq.topic") if door == "amqp" else ()
    command = ("publish", target, "21.5", "-H", "unit=C", "-H", "site=a=b", *exchange, *at(running, door))
    assert call_lmq(*command).exit_code == (0 if door == "rocketmq" else NOBODY)  # which RocketMQ does not tell
    (found,) = _shown(running, f"sent/{door}", "--count", "1")
    assert found["body"] == "21.5"
    assert found["headers"]["unit"] == "C"
    assert found["headers"]["site"] == "a=b"


@pytest.mark.slow
def test_lines_files_sizes_and_counts(running, tmp_path):
    mqtt = at(running, "mqtt")
    assert call_lmq("publish", "lines", "--lines", *mqtt, input="a\nb\n\nc").exit_code == NOBODY
    assert [one["body"] for one in _shown(running, "lines", "--count", "4")] == ["a", "b", "", "c"]
    (tmp_path / "body").write_bytes(b"\xff\n")
    assert call_lmq("publish", "file", "--file", str(tmp_path / "body"), *mqtt).exit_code == NOBODY
    assert _shown(running, "file", "--count", "1")[0] == {
        "topic": "file", "body": "/wo=", "encoding": "base64", "body_bytes": 2, "headers": {},
        "properties": {"qos": 1, "retain": False},
    }  # fmt: skip
    assert call_lmq("publish", "sized", "--size", "7", "--count", "2", "--rate", "1000", *mqtt).exit_code == NOBODY
    assert [one["body_bytes"] for one in _shown(running, "sized", "--count", "2")] == [7, 7]
    assert call_lmq("publish", "piped", *mqtt, input="from stdin").exit_code == NOBODY
    assert _shown(running, "piped", "--count", "1")[0]["body"] == "from stdin"


@pytest.mark.slow
def test_programs_are_told_how_many_messages_were_sent_and_reached_nobody(running):
    mqtt = at(running, "mqtt")
    assert told_json("publish", "counted", "x", "--count", "3", *mqtt, code=NOBODY) == {"sent": 3, "unreached": 3}
    assert told_json("publish", "counted", "x", *at(running, "rocketmq")) == {"sent": 1, "unreached": 0}


@pytest.mark.slow
def test_what_mqtt_retains_and_expires(running):
    mqtt = at(running, "mqtt")
    options = ("--retain", "--qos", "2", "--expires", "60", "--content-type", "text/plain")
    assert call_lmq("publish", "kept/1", "x", *options, *mqtt).exit_code == 0
    told = json.loads(call_lmq("subscribe", "kept/#", "--count", "1", "--json", *mqtt).stdout)
    assert told["properties"]["retain"] is True
    assert told["properties"]["content_type"] == "text/plain"
    assert 0 < told["properties"]["message_expiry"] <= 60


@pytest.mark.slow
def test_mistakes_are_told_with_exit_codes_of_their_kind(running):
    mqtt, amqp, rocketmq = (at(running, door) for door in ("mqtt", "amqp", "rocketmq"))
    check_told(call_lmq("publish", "a", "x", "--header", "colour", *mqtt), "--header colour: give NAME=VALUE$")
    check_told(call_lmq("publish", "a", "x", "--size", "3", *mqtt), "give only one of BODY, --file and --size")
    check_told(call_lmq("publish", "", "x", *mqtt), "the target is empty")
    check_told(call_lmq("publish", "a/#", "x", *mqtt), "wildcards")
    check_told(call_lmq("publish", "a", "--file", "/none", *mqtt), "cannot read /none: No such file")
    check_told(call_lmq("publish", "a", "x", "--retain", *amqp), "--retain is for mqtt, not for amqp")
    check_told(call_lmq("publish", "a", "x", "--retain", *rocketmq), "--retain is for mqtt, not for rocketmq")
    check_told(call_lmq("publish", "a", "x", "--exchange", "none", *amqp), "no exchange 'none' in vhost '/'", code=4)
    check_told(call_lmq("publish", "a", "x", *amqp), "^lmq: the message reaches no queue$", code=3)
    check_told(call_lmq("publish", "a", "x", "--count", "2", *amqp), "2 of 2 messages reach no queue", code=3)
    check_told(call_lmq("publish", "$SYS/broker/x", "x", *mqtt), "Not authorized", code=5)
    check_told(call_lmq("publish", "$SYS/broker/x", "x", "--qos", "2", *mqtt), "try --qos 1 to see the reason", code=7)
