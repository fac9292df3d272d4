"""An address that guessed is told at each door that it is refused for a while, and not that it was wrong."""

from __future__ import annotations

import aio_pika
import aiomqtt
import aiormq
import pytest

from gateway.settings.models import AuthSettings
from tests.support.admin import make_client, make_view
from tests.support.gateway import running_gateway
from tests.support.logins import quick_hash

pytestmark = [pytest.mark.asyncio]

TOLD = "this address is refused for a while"


async def connect_mqtt(gateway, **more):
    host, port = gateway.listening["mqtt"]
    async with aiomqtt.Client(host, port, username="ann", password="right", **more):
        pass


async def test_address_that_guessed_is_told_so(tmp_path, caplog):
    auth = AuthSettings.model_validate(
        {
            "users": {"ann": {"password_hash": quick_hash("right"), "tags": ["administrator"]}},
            "penalty": {"wrong_max": 1, "loopback": True, "refuse_s": 50},
        }
    )
    async with running_gateway(tmp_path, auth=auth) as gateway:
        async with make_client(make_view(gateway), auth=("ann", "wrong")) as client:
            assert (await client.get("/api/whoami")).status_code == 401
        async with make_client(make_view(gateway), auth=("ann", "right")) as client:
            answer = await client.get("/api/whoami")
        assert answer.status_code == 429
        assert TOLD in answer.json()["reason"]
        assert 40 <= int(answer.headers["Retry-After"]) <= 50
        with pytest.raises(aiomqtt.MqttError, match=r"[Bb]anned"):
            await connect_mqtt(gateway, protocol=aiomqtt.ProtocolVersion.V5)
        with pytest.raises(aiomqtt.MqttError, match="authori"):
            await connect_mqtt(gateway, protocol=aiomqtt.ProtocolVersion.V311)
        host, port = gateway.listening["amqp"]
        with pytest.raises(aiormq.exceptions.AMQPError, match=TOLD):
            await aio_pika.connect(host=host, port=port, login="ann", password="right")
    assert caplog.text.count(f"reason={TOLD}") == 4
