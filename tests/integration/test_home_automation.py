"""How Home Assistant and zigbee2mqtt use a broker: discovery that is retained, birth and will."""

from __future__ import annotations

import asyncio
import json

import aiomqtt
import pytest

from gateway.settings.models import AmqpSettings, RocketmqSettings
from tests.support.gateway import running_gateway

WAIT_S = 15
OFF = {"amqp": AmqpSettings(listen="off"), "rocketmq": RocketmqSettings(namesrv="off", broker="off")}
DISCOVERY = "homeassistant/light/0x00158d/light/config"
STATE = "zigbee2mqtt/lamp"
BRIDGE = "zigbee2mqtt/bridge/state"


def will(topic, payload):
    return aiomqtt.Will(topic, payload, qos=1, retain=True)


class Home:
    """Home Assistant: it asks for one filter after the other, each answered with what is retained."""

    def __init__(self, gateway, version):
        host, port = gateway.listening["mqtt"]
        self.client = aiomqtt.Client(
            host, port, protocol=version, identifier="homeassistant", will=will("homeassistant/status", "offline")
        )

    async def __aenter__(self):
        await self.client.__aenter__()
        await self.client.subscribe([("homeassistant/+/+/config", 0), ("homeassistant/+/+/+/config", 0)])
        await self.client.publish("homeassistant/status", "online", qos=0, retain=True)
        return self

    async def __aexit__(self, *exc_info):
        await self.client.__aexit__(*exc_info)

    async def hear(self):
        """Return topic, payload and retain flag of the next message."""
        async with asyncio.timeout(WAIT_S):
            message = await anext(aiter(self.client.messages))
        return str(message.topic), message.payload, message.retain


def zigbee(gateway):
    host, port = gateway.listening["mqtt"]
    return aiomqtt.Client(host, port, identifier="mqttjs_zigbee", will=will(BRIDGE, '{"state":"offline"}'))


@pytest.mark.asyncio
@pytest.mark.parametrize("version", [aiomqtt.ProtocolVersion.V311, aiomqtt.ProtocolVersion.V5])
async def test_devices_are_found_come_back_after_a_restart_and_are_gone_with_their_bridge(tmp_path, version):
    device = json.dumps({"availability": [{"topic": BRIDGE}], "state_topic": STATE}).encode()
    async with running_gateway(tmp_path, **OFF) as gateway, zigbee(gateway) as bridge:
        await bridge.subscribe("homeassistant/status")
        await bridge.publish(BRIDGE, '{"state":"online"}', qos=1, retain=True)
        await bridge.publish(DISCOVERY, device, qos=1, retain=True)
        await bridge.publish(STATE, '{"state":"ON"}', qos=0, retain=False)
        async with Home(gateway, version) as home:
            assert await home.hear() == (DISCOVERY, device, True)
            await home.client.subscribe(BRIDGE)
            assert await home.hear() == (BRIDGE, b'{"state":"online"}', True)
            async with asyncio.timeout(WAIT_S):
                birth = await anext(aiter(bridge.messages))
            assert (str(birth.topic), birth.payload) == ("homeassistant/status", b"online")
            await home.client.subscribe(STATE)
            await bridge.publish(STATE, '{"state":"OFF"}')  # as it does when it hears of the birth
            assert await home.hear() == (STATE, b'{"state":"OFF"}', False)
            newer = zigbee(gateway)  # the same client from elsewhere: the older one's will is published
            async with newer:
                assert await home.hear() == (BRIDGE, b'{"state":"offline"}', False)
                await newer.publish(BRIDGE, '{"state":"online"}', qos=1, retain=True)
                assert await home.hear() == (BRIDGE, b'{"state":"online"}', False)
                await newer.publish(DISCOVERY, b"", qos=1, retain=True)  # the device is removed
                assert await home.hear() == (DISCOVERY, b"", False)
        async with Home(gateway, version) as home:
            await home.client.subscribe(BRIDGE)
            assert await home.hear() == (BRIDGE, b'{"state":"online"}', True)  # and nothing of the device before it
