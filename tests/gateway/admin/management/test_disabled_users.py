"""Users that an administrator disables: their connections end, and none comes in, whatever the way."""

from __future__ import annotations

import asyncio

import aio_pika
import aiomqtt
import aiormq
import pytest

from gateway.auth.credentials import Credentials, Identity
from tests.support import mqtt
from tests.support.admin import make_client, make_view, managed_gateway
from tests.support.logins import quick_hash

pytestmark = pytest.mark.asyncio
SAID = {"password_hash": quick_hash("secret"), "tags": "monitoring"}
ALL = {"configure": ".*", "write": ".*", "read": ".*"}


async def make_users(client, *names):
    for name in names:
        assert (await client.put(f"/api/users/{name}", json=SAID)).status_code == 201
        assert (await client.put(f"/api/permissions/%2F/{name}", json=ALL)).status_code == 201


async def connect_mqtt(gateway, client, user):
    reader, writer = await asyncio.open_connection(*gateway.listening["mqtt"])
    writer.write(mqtt.connect(client, user=user, password=b"secret", clean=False))
    answer = await reader.readexactly(4)
    return reader, writer, answer


async def test_connections_of_a_disabled_user_are_closed_and_no_others_and_its_sessions_stay(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        await make_users(client, "ann", "bob")
        host, port = gateway.listening["amqp"]
        queue = await aio_pika.connect(host=host, port=port, login="bob", password="secret")
        for number in range(2):  # one stays, the other one has left a session
            reader, writer, answer = await connect_mqtt(gateway, b"bob-%d" % number, b"bob")
            assert answer == mqtt.connack()
            if number == 0:
                writer.close()
        ann_reader, ann, _ = await connect_mqtt(gateway, b"ann-0", b"ann")
        assert (await client.post("/api/lmq/users/bob/disable")).status_code == 204
        async with asyncio.timeout(10):
            assert await reader.read() == b""
            while not queue.transport.connection.is_closed:
                await asyncio.sleep(0)
        ann.write(mqtt.publish(b"a", b"1", qos=1, packet_id=1))
        assert await ann_reader.readexactly(4) == mqtt.puback(1)
        assert (await client.post("/api/lmq/users/bob/enable")).status_code == 204
        for number in range(2):
            _, again, answer = await connect_mqtt(gateway, b"bob-%d" % number, b"bob")
            assert answer == mqtt.connack(session_present=True)
            again.close()
        for one in (writer, ann):
            one.close()


async def test_a_disabled_user_comes_in_by_no_door_until_it_is_enabled(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        await make_users(client, "bob")
        said = {"name": "t", "user": "bob", "scopes": ["read"]}
        token = (await client.post("/api/lmq/tokens", json=said)).json()["token"]
        view, (host, port) = make_view(gateway), gateway.listening["amqp"]

        async def ways():
            """Return by which ways bob comes in now."""
            found = []
            try:
                async with aiomqtt.Client(*gateway.listening["mqtt"], username="bob", password="secret"):
                    found.append("mqtt")
            except aiomqtt.MqttError:
                pass
            try:
                async with await aio_pika.connect(host=host, port=port, login="bob", password="secret"):
                    found.append("amqp")
            except aiormq.exceptions.AMQPError:
                pass
            async with make_client(view, auth=("bob", "secret")) as other:
                found += ["admin"] if (await other.get("/api/overview")).status_code == 200 else []
            async with make_client(view, auth=None) as other:
                answer = await other.get("/api/overview", headers={"Authorization": f"Bearer {token}"})
                found += ["token"] if answer.status_code == 200 else []
            return found

        assert await ways() == ["mqtt", "amqp", "admin", "token"]
        assert (await client.post("/api/lmq/users/bob/disable")).status_code == 204
        assert (await client.get("/api/users/bob")).json()["lmq"]["is_disabled"]
        assert await ways() == []
        assert (await client.put("/api/users/bob", json=SAID)).status_code == 204  # as RabbitMQ's tools change a user
        assert (await client.put("/api/lmq/users/bob/tags", json={"tags": ["monitoring"]})).status_code == 204
        assert await ways() == []
        assert (await client.post("/api/lmq/users/bob/enable")).status_code == 204
        assert await ways() == ["mqtt", "amqp", "admin", "token"]


async def test_a_disabled_user_has_no_way_left(tmp_path):
    """Neither a token of the API, nor a certificate, nor the will of a connection that a killed gateway left."""
    async with managed_gateway(tmp_path) as (gateway, client):
        await make_users(client, "bob")
        made = await client.post("/api/lmq/tokens", json={"name": "ci", "scopes": ["read"], "user": "bob"})
        by_token = {"Authorization": f"Bearer {made.json()['token']}"}

        async def find_ways():
            answers = []
            who = Credentials("mqtt", None, None, "192.0.2.7:1", certified="bob")
            gateway.authenticator.begin(who, lambda answer, _: answers.append(answer))
            async with make_client(make_view(gateway), auth=None) as program:
                code = (await program.get("/api/overview", headers=by_token)).status_code
            rights = [gateway.authenticator.find_rights("mqtt", "bob"), gateway.authenticator.find_member("bob", "")]
            return code, isinstance(answers[0], Identity), [right is not None for right in rights]

        assert await find_ways() == (200, True, [True, True])
        assert (await client.post("/api/lmq/users/bob/disable")).status_code == 204
        assert await find_ways() == (401, False, [False, False])
        assert (await client.post("/api/lmq/users/bob/enable")).status_code == 204
        assert await find_ways() == (200, True, [True, True])


async def test_only_administrators_disable_and_only_users_of_the_data_folder(tmp_path):
    rights = {"users": {"ann": {"password_hash": quick_hash("secret"), "tags": ["administrator"]}}}
    async with managed_gateway(tmp_path, rights=rights, auth=("ann", "secret")) as (gateway, client):
        await make_users(client, "bob")
        for action in ("disable", "enable"):
            answer = await client.post(f"/api/lmq/users/ann/{action}")
            assert (answer.status_code, "is one of the settings" in answer.json()["reason"]) == (400, True)
            assert (await client.post(f"/api/lmq/users/nobody/{action}")).status_code == 404
            async with make_client(make_view(gateway), auth=("bob", "secret")) as other:
                assert (await other.post(f"/api/lmq/users/bob/{action}")).status_code == 401
        assert not gateway.authenticator.stored.users["bob"].is_disabled
