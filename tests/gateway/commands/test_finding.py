from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from functools import partial

import paho.mqtt.client
import pytest

from gateway.commands.client import AdminClient
from tests.support.commands import call_lmq, check_told

pytestmark = pytest.mark.slow


@pytest.fixture
def show(running):
    """`lmq queues show` at a gateway that has some, which goes back to what it was."""
    admin = f"127.0.0.1:{running.port('admin')}"
    client = AdminClient(admin)
    client.send("PUT", "/api/vhosts/far", {})
    for path in ("%2F/shown", "%2F/shown-too", "far/shown", "far/only-far"):
        client.send("PUT", f"/api/queues/{path}", {"durable": True})
    yield partial(call_lmq, "queues", "show", "--admin", admin)
    for path in ("queues/%2F/shown", "queues/%2F/shown-too", "vhosts/far"):
        client.send("DELETE", f"/api/{path}")


def test_a_queue_is_shown_by_its_name_its_filter_or_its_light_queue(running, show):
    told = json.loads(show("shown", "--json").stdout)
    assert (told["name"], told["door"], told["vhost"]) == ("shown", "amqp", "/")
    assert json.loads(show(told["light_queue"], "--json").stdout)["name"] == "shown"
    assert json.loads(show("shown", "--vhost", "far", "--json").stdout)["vhost"] == "far"
    assert json.loads(show("only-far", "--json").stdout)["vhost"] == "far"
    check_told(show("only-far", "--vhost", "/"), "no queue is called 'only-far' in virtual", code=4)
    with listening(running, "shown"):
        check_told(show("shown"), "several queues are called 'shown': add --door", code=2)
        assert json.loads(show("shown", "--door", "mqtt", "--json").stdout)["door"] == "mqtt"


@contextmanager
def listening(running, topic_filter):
    """An MQTT client that is subscribed."""
    client = paho.mqtt.client.Client(paho.mqtt.client.CallbackAPIVersion.VERSION2)
    answered = threading.Event()
    client.on_connect = lambda *_: client.subscribe(topic_filter, 1)
    client.on_subscribe = lambda *_: answered.set()
    client.connect("127.0.0.1", running.port("mqtt"))
    client.loop_start()
    try:
        assert answered.wait(10)
        yield
    finally:
        client.loop_stop()
        client.disconnect()
