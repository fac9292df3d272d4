from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

from gateway.commands.client import AdminClient
from tests.support.commands import at, call_lmq, check_told, started_lmq
from tests.support.sources import ROOT

pytestmark = pytest.mark.slow


def _declare(running, name):
    client = AdminClient(f"127.0.0.1:{running.port('admin')}")
    client.send("PUT", f"/api/queues/%2F/{name}", {"durable": True})


def _take(*command):
    return call_lmq("consume", *command).stdout.splitlines()


def test_a_queue_gives_its_messages_once_back_or_to_be_read_again(running):
    amqp = at(running, "amqp")
    _declare(running, "taken")
    assert call_lmq("publish", "taken", "--lines", *amqp, input="a\nb\nc\nd").exit_code == 0
    back = _take("taken", "--count", "2", "--ackmode", "requeue", "--json", *amqp)
    assert [json.loads(line)["body"] for line in back] == ["a", "b"]
    assert _take("taken", "--count", "2", *amqp) == ["taken a", "taken b"]
    assert _take("taken", "--count", "1", "--ackmode", "none", "-o", "body", *amqp) == ["c"]
    assert _take("taken", "--count", "1", "--idle", "9", "--ackmode", "reject", "-o", "hex", *amqp) == ["taken 64"]
    check_told(
        call_lmq("consume", "taken", "--count", "1", "--idle", "0.2", *amqp), "only 0 of 1 messages came", code=3
    )
    again = _take("taken", "--from", "1", "--count", "3", "-o", "body", *amqp)
    assert again == ["b", "c", "d"]
    assert _take("taken", "--from", "-1h", "--count", "4", "-o", "body", *amqp) == ["a", "b", "c", "d"]


def test_groups_of_mqtt_and_rocketmq_share_the_work(running):
    for door, topic in (("mqtt", "shared/1"), ("rocketmq", "Shared")):
        place = at(running, door)
        take = [sys.executable, "-m", "gateway", "consume", topic, "--group", "g", "--count", "2", "--json", *place]
        with subprocess.Popen(take, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            lines = []
            for number in range(100):  # until it is there
                call_lmq("publish", topic, str(number), *place)
                if process.poll() is not None:
                    break
            lines = process.stdout.read().splitlines()
        assert process.returncode == 0
        first, second = (int(json.loads(line)["body"]) for line in lines)
        assert first < second


def test_ctrl_c_and_a_reader_that_is_gone_end_it_in_peace(running):
    mqtt = at(running, "mqtt")
    assert call_lmq("publish", "ended/1", "x", "--retain", *mqtt).exit_code == 0
    listen = ("subscribe", "ended/#", *mqtt)
    with started_lmq(*listen) as process:
        assert process.stdout.readline() == "ended/1 x\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0
        assert process.stderr.read() == ""
    with started_lmq(*listen) as process:
        assert process.stdout.readline() == "ended/1 x\n"
        process.stdout.close()
        call_lmq("publish", "ended/2", "y", *mqtt)
        assert process.wait(10) == 0
        assert process.stderr.read() == ""


def test_mistakes_are_told(running):
    mqtt, amqp, rocketmq = (at(running, door) for door in ("mqtt", "amqp", "rocketmq"))
    check_told(call_lmq("subscribe", "a/#/b", *mqtt), "mqtt refuses the filter 'a/#/b'")
    check_told(call_lmq("subscribe", "a", "--from", "soon", *mqtt), "'soon' is neither a time")
    check_told(call_lmq("subscribe", "a", "--from", "last", *mqtt), "first, an offset, or a time")
    check_told(call_lmq("subscribe", "a", "--from", "first", *amqp), "lmq consume QUEUE --from")
    check_told(call_lmq("consume", "a", "--from", "first", *mqtt), "lmq subscribe --from")
    check_told(call_lmq("consume", "a", "--from", "5", *rocketmq), "first or last")
    check_told(call_lmq("consume", "a", "--ackmode", "requeue", *amqp), "requeue needs --count")
    check_told(call_lmq("consume", "none", *amqp), "no queue 'none' in vhost '/'", code=4)
    check_told(call_lmq("subscribe", "Nowhere", "--from", "first", *rocketmq), "rocketmq: .*Nowhere", code=4)
