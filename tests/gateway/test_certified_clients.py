"""Clients that show a certificate to a running gateway."""

from __future__ import annotations

import asyncio
import ssl

import pika
import pytest

from gateway.settings.models import AmqpSettings, AuthSettings, MqttSettings
from tests.support import mqtt
from tests.support.certificates import authority_file, client_context, client_files
from tests.support.gateway import running_gateway
from tests.support.listening import secure
from tests.support.logins import quick_hash
from tests.support.mqtt_5 import P, connack_of

pytestmark = pytest.mark.asyncio


async def _connect(gateway, packet, **client):
    """Return the answer to a CONNECT of MQTT 5."""
    context = client_context(**client)
    reader, writer = await asyncio.open_connection(*gateway.listening["mqtts"], ssl=context)
    writer.write(packet)
    head = await reader.readexactly(2)
    answer = head + await reader.readexactly(head[1])
    writer.close()
    return connack_of(answer)


async def test_client_identifier_is_the_one_of_the_certificate(tmp_path):
    entry = {**secure(client_ca=authority_file()), "client_id_from": "common_name"}
    async with running_gateway(tmp_path, mqtt=MqttSettings(listen=[entry])) as gateway:
        shows = client_files("sensor-1")
        _, code, _ = await _connect(gateway, mqtt.connect_5(b"sensor-1"), shows=shows)
        assert code == 0
        _, code, _ = await _connect(gateway, mqtt.connect_5(b"sensor-2"), shows=shows)
        assert code == 0x85
        _, code, found = await _connect(gateway, mqtt.connect_5(b""), shows=shows)
        assert (code, found.texts[P.ASSIGNED_CLIENT_ID]) == (0, b"sensor-1")


async def test_amqp_client_is_the_user_that_its_certificate_names_in_a_host_name(tmp_path, caplog):
    entry = secure(client_ca=authority_file(), client_certificate="optional", user_from="dns")
    auth = AuthSettings.model_validate({"users": {"ann.test": {"password_hash": quick_hash("secret")}}})
    async with running_gateway(tmp_path, amqp=AmqpSettings(listen=[entry]), auth=auth) as gateway:
        host, port = gateway.listening["amqps"]

        def open_as(name, credentials):
            context = client_context(shows=None if name is None else client_files(name))
            options = pika.SSLOptions(context, host)
            parameters = pika.ConnectionParameters(host, port, ssl_options=options, credentials=credentials)
            with pika.BlockingConnection(parameters) as connection:
                connection.channel().queue_declare("q")

        external = pika.credentials.ExternalCredentials
        await asyncio.to_thread(open_as, "ann", external())
        await asyncio.to_thread(open_as, None, pika.PlainCredentials("ann.test", "secret"))
        for name in ("bob", None):  # no user of that name; and EXTERNAL is offered to those with a certificate alone
            with pytest.raises(pika.exceptions.AMQPConnectionError):
                await asyncio.to_thread(open_as, name, external())
    assert "reason=the name in the certificate is none of the users: bob" in caplog.text


async def test_handshakes_that_failed_are_counted_with_their_reason(tmp_path):
    async with running_gateway(tmp_path, mqtt=MqttSettings(listen=[secure(client_ca=authority_file())])) as gateway:
        with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
            await _connect(gateway, mqtt.connect_5(b"c"))
        (address,) = gateway.listeners.certificates()
        assert address.counts.failed == {"no_certificate": 1}
