from __future__ import annotations

import json

import pytest

from tests.support.commands import at, call_lmq, check_told

pytestmark = pytest.mark.slow


def test_figures_are_a_table_or_an_object(running):
    mqtt = at(running, "mqtt")
    told = call_lmq("bench", "pubsub", "bench/1", "--count", "200", "--subs", "2", *mqtt)
    assert told.exit_code == 0, told.stderr
    head, *lines = told.stdout.splitlines()
    assert head.endswith("bench/1, QoS 1, 128 bytes")
    rows = [line.split()[:3] for line in lines if "ers " in line]
    assert rows == [["publishers", "1", "200"], ["consumers", "2", "400"]]
    told = json.loads(call_lmq("bench", "pub", "bench/1", "--count", "10", "--size", "0", "--json", *mqtt).stdout)
    assert told["publishers"]["messages"] == 10
    assert told["consumers"] is None


def test_what_was_retained_before_is_not_counted(running):
    mqtt = at(running, "mqtt")
    assert call_lmq("publish", "bench/kept", "old", "--retain", *mqtt).exit_code in {0, 3}
    told = call_lmq("bench", "pubsub", "bench/kept", "--count", "50", "--subs", "2", "--json", *mqtt)
    assert json.loads(told.stdout)["consumers"]["messages"] == 100


def test_what_does_not_come_is_told(running):
    told = call_lmq("bench", "sub", "bench/none", "--seconds", "0.2", "--json", *at(running, "mqtt"))
    assert json.loads(told.stdout)["consumers"]["messages"] == 0
    nobody = call_lmq("bench", "pub", "--door", "amqp", "--server", "127.0.0.1:1")
    check_told(nobody, "cannot connect to amqp 127.0.0.1:1", code=6)
