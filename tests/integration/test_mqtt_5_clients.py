"""What MQTT 5 adds to a connection, as clients in use find it: aliases, authentication, response information."""

from __future__ import annotations

import queue

import paho.mqtt.client as paho
import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from tests.support.gateway import GatewayProcess

pytestmark = pytest.mark.slow

WAIT_S = 15


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    with GatewayProcess(tmp_path_factory.mktemp("mqtt5")) as running:
        yield running
        assert not any("Traceback" in line for line in running.errors), "".join(running.errors)


def test_paho_goes_by_the_aliases_it_is_given(gateway):
    got, ready = queue.Queue(), queue.Queue()
    client = paho.Client(paho.CallbackAPIVersion.VERSION2, "aliases", protocol=paho.MQTTv5)
    client.on_message = lambda _client, _userdata, message: got.put(message)
    client.on_subscribe = lambda *_: ready.put(None)
    properties = Properties(PacketTypes.CONNECT)
    properties.TopicAliasMaximum = 4
    client.connect(*gateway.address("mqtt"), properties=properties)
    client.loop_start()
    client.subscribe("plant/+/temperature", 1)
    ready.get(timeout=WAIT_S)
    for i in range(6):
        client.publish(f"plant/{i % 2}/temperature", b"%d" % i, 1).wait_for_publish(WAIT_S)
    known = {}
    for i in range(6):
        message = got.get(timeout=WAIT_S)
        alias = getattr(message.properties, "TopicAlias", 0)
        topic = known.setdefault(alias, message.topic) if alias else message.topic
        assert (topic, message.payload) == (f"plant/{i % 2}/temperature", b"%d" % i)
    assert len(known) == 2
    client.disconnect()
    client.loop_stop()
