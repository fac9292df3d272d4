from __future__ import annotations

import json
import re
import threading

import paho.mqtt.client as mqtt
import pytest

from tests.support.commands import call_lmq, check_told, publish_mqtt


@pytest.mark.slow
def test_where_messages_go_is_shown_as_they_come_and_what_a_device_has_not_got(running):
    admin = ("--admin", f"127.0.0.1:{running.port('admin')}")
    host, port = running.address("mqtt")
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, "pump-7", clean_session=False)
    client.connect(host, port)
    client.loop_start()
    subscribed = threading.Event()
    client.on_subscribe = lambda *_: subscribed.set()
    client.subscribe("traced/#", 1)
    assert subscribed.wait(10)
    client.disconnect()
    client.loop_stop()
    publish_mqtt(running, "traced/1", b"21.5")
    traced = call_lmq("trace", "traced/+", "--offset", "0", "--count", "1", *admin)
    (line,) = traced.stdout.splitlines()
    assert re.search(r" traced/1 by .*, 4 bytes, id \d+ -> mqtt traced/#$", line)
    number = re.search(r"id (\d+)", line)[1]
    assert json.loads(call_lmq("trace", "--offset", "0", "--count", "1", "--json", *admin).stdout)["queues"] != ""
    told = call_lmq("message", number, *admin)
    assert re.search(r"session +pump-7 +waits", told.stdout)
    told = call_lmq("device", "pump-7", *admin)
    assert re.search(r"^waiting +1$", told.stdout, re.MULTILINE)
    assert re.search(r"traced/# +1 +1 +0", told.stdout)
    check_told(call_lmq("device", "nobody", *admin), "no session of client 'nobody'", code=4)
    check_told(call_lmq("message", "999999999999", *admin), "no such message is kept", code=4)
