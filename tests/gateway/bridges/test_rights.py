"""A bridge is no way round what a user may not read or send, and nobody can be one."""

from __future__ import annotations

import aiomqtt
import pytest

from gateway.settings.models import AuthSettings
from tests.gateway.bridges.conftest import OFF
from tests.support.gateway import running_gateway
from tests.support.logins import quick_hash
from tests.support.waiting import until

pytestmark = pytest.mark.asyncio

OUT = {"filter": "up/#"}
DOWN = {"filter": "down/#", "direction": "in"}
AUTH = AuthSettings.model_validate(
    {
        "users": {"bob": {"password_hash": quick_hash("secret")}},
        "rules": [{"permit": "deny", "users": ["bob"], "topics": ["up/secret/#", "down/secret/#"]}],
    }
)
BOB = {"username": "bob", "password": "secret"}


def local(site):
    bridges = {"cloud": site.bridge((OUT, DOWN))}
    return running_gateway(site.tmp_path / "local", **OFF, bridges=bridges, auth=AUTH)


def connected(gateway):
    return lambda: gateway.broker.metrics.bridge("cloud").is_connected


async def test_what_a_user_may_not_publish_or_read_does_not_go_by_a_bridge(site):
    async with site.remote() as remote, local(site) as gateway:
        await until(connected(gateway))
        async with site.client(remote, "up/#") as there, site.client(gateway, **BOB) as bob:
            for topic_filter in ("down/secret/#", "down/#", "#"):
                (code,) = await bob.subscribe(topic_filter, qos=1)
                assert code.value == 0x87
            for qos in (0, 1, 2):
                await bob.publish("up/secret/1", "forged", qos=qos)
            await bob.publish("up/open", "told", qos=1)
            assert await site.take(there, 1) == [("up/open", b"told")]


async def test_nobody_comes_in_as_a_bridge_or_takes_its_session(site):
    async with site.remote(), local(site) as gateway:
        await until(connected(gateway))
        host, port = gateway.listening["mqtt"]
        tries = [
            {"username": "$bridge/cloud", "password": ""},
            {"username": "$bridge/cloud", "password": "secret"},
            {"identifier": "$bridge/cloud"},
            {"identifier": "$bridge/cloud", **BOB},
        ]
        for said in tries:
            for version in (aiomqtt.ProtocolVersion.V311, aiomqtt.ProtocolVersion.V5):
                with pytest.raises(aiomqtt.MqttError):
                    async with aiomqtt.Client(host, port, protocol=version, **said):
                        pass
        assert gateway.broker.metrics.bridge("cloud").is_connected
        assert set(gateway.doors["mqtt"].sessions.find(b"$bridge/cloud").subscriptions) == {b"up/#"}
