from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib

import aio_pika
import aiomqtt
import aiormq
import pytest
from argon2 import PasswordHasher

from lmq.remoting.commands import decode_header
from lmq.remoting.signature import AccessKeys
from tests.support import mqtt
from tests.support.admin import managed_gateway
from tests.support.logins import quick_hash
from tests.support.rocketmq import request_frame, signed

pytestmark = pytest.mark.asyncio
QUICK = quick_hash("secret")
BOB = {"password_hash": QUICK, "tags": "monitoring, ops"}
ALL = {"configure": ".*", "write": ".*", "read": ".*"}


async def test_user_is_made_told_changed_and_deleted(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        assert (await client.put("/api/users/bob%2F1", json=BOB)).status_code == 201
        assert (await client.put("/api/users/bob%2F1", json=BOB)).status_code == 204
        found = (await client.get("/api/users/bob%2F1")).json()
        assert found == {
            "name": "bob/1",
            "password_hash": QUICK,
            "hashing_algorithm": "lmq_scrypt",
            "tags": ["monitoring", "ops"],
            "limits": {},
            "lmq": {"of_settings": False, "has_secret": False, "is_disabled": False},
        }
        assert [one["name"] for one in (await client.get("/api/users")).json()] == ["bob/1"]
        assert [one["name"] for one in (await client.get("/api/users/without-permissions")).json()] == ["bob/1"]
        assert (await client.put("/api/lmq/users/bob%2F1/tags", json={"tags": []})).status_code == 204
        assert gateway.authenticator.stored.users["bob/1"].kept == QUICK
        assert (await client.delete("/api/users/bob%2F1")).status_code == 204
        assert (await client.delete("/api/users/bob%2F1")).status_code == 404
        assert (await client.get("/api/users/bob%2F1")).status_code == 404


async def test_users_and_permissions_outlive_the_process(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        await client.put("/api/users/bob", json=BOB)
        await client.put("/api/permissions/%2F/bob", json=ALL)
        said = {"exchange": "amq.topic", "write": "^a", "read": "^b"}
        await client.put("/api/topic-permissions/%2F/bob", json=said)
    async with managed_gateway(tmp_path) as (_, client):
        assert (await client.get("/api/permissions/%2F/bob")).json() == {"user": "bob", "vhost": "/", **ALL}
        assert (await client.get("/api/topic-permissions/%2F/bob")).json() == [{"user": "bob", "vhost": "/", **said}]


async def test_a_hash_of_rabbitmq_is_taken_and_told_as_it_was(tmp_path):
    raw = b"salt" + hashlib.sha256(b"salt" + b"secret").digest()
    said = {"password_hash": base64.b64encode(raw).decode(), "hashing_algorithm": "rabbit_password_hashing_sha256"}
    async with managed_gateway(tmp_path) as (gateway, client):
        assert (await client.put("/api/users/bob", json={**said, "tags": "administrator"})).status_code == 201
        found = (await client.get("/api/users/bob")).json()
        assert {name: found[name] for name in said} == said
        assert (await client.get("/api/whoami", auth=("bob", "secret"))).json()["name"] == "bob"
        assert (await client.get("/api/whoami", auth=("bob", "wrong"))).status_code == 401
        del gateway


def b64(raw):
    return base64.b64encode(raw).decode()


HASHES = {  # of the password `secret`, as other brokers keep them
    "rabbitmq-sha256": (b64(b"salt" + hashlib.sha256(b"saltsecret").digest()), "rabbit_password_hashing_sha256"),
    "rabbitmq-sha512": (b64(b"salt" + hashlib.sha512(b"saltsecret").digest()), "rabbit_password_hashing_sha512"),
    "mosquitto-7": (f"$7$101${b64(b'salt')}${b64(hashlib.pbkdf2_hmac('sha512', b'secret', b'salt', 101, 64))}", "lmq_"),
    "mosquitto-argon2id": (PasswordHasher(1, 64, 1, hash_len=64, salt_len=64).hash("secret"), "lmq_"),
    "mosquitto-6": (f"$6${b64(b'salt')}${b64(hashlib.sha512(b'secretsalt').digest())}", "lmq_"),
}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # aiormq's, of a refused connection
async def test_users_with_hashes_of_other_brokers_come_in_by_each_door_also_after_a_start(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        for name, (text, algorithm) in HASHES.items():
            said = {"password_hash": text, "hashing_algorithm": algorithm, "tags": "monitoring"}
            assert (await client.put(f"/api/users/{name}", json=said)).status_code == 201
            await client.put(f"/api/permissions/%2F/{name}", json=ALL)
    async with managed_gateway(tmp_path) as (gateway, client):
        for name in HASHES:
            async with aiomqtt.Client(*gateway.listening["mqtt"], username=name, password="secret"):
                pass
            url = "amqp://{}:{}@{}:{}/"
            await (await aio_pika.connect(url.format(name, "secret", *gateway.listening["amqp"]))).close()
            assert (await client.get("/api/whoami", auth=(name, "secret"))).json()["name"] == name
            with pytest.raises(aiomqtt.MqttError):
                await aiomqtt.Client(*gateway.listening["mqtt"], username=name, password="Secret").__aenter__()
            with pytest.raises(aiormq.exceptions.AMQPError):
                await aio_pika.connect(url.format(name, "Secret", *gateway.listening["amqp"]))
            assert (await client.get("/api/whoami", auth=(name, "Secret"))).status_code == 401


async def test_a_new_user_may_nothing_and_then_what_the_permissions_say(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        await client.put("/api/users/bob", json=BOB)
        url = "amqp://bob:secret@{}:{}/".format(*gateway.listening["amqp"])
        with pytest.raises(aiormq.exceptions.InvalidFrameError, match=r"Connection\.Close"):
            await aio_pika.connect(url)
        rows = {"configure": "^bob-", "write": "^(bob-|amq.default)", "read": "^bob-"}
        await client.put("/api/permissions/%2F/bob", json=rows)
        async with await aio_pika.connect(url) as connection:
            channel = await connection.channel()
            await channel.declare_queue("bob-1")
            with pytest.raises(aiormq.exceptions.ChannelAccessRefused, match="configure access to queue 'other'"):
                await channel.declare_queue("other")
            await client.delete("/api/users/bob")
            async with asyncio.timeout(10):
                while not connection.transport.connection.is_closed:
                    await asyncio.sleep(0)


async def test_permissions_of_amq_topic_are_those_of_mqtt(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        await client.put("/api/users/bob", json=BOB)
        await client.put("/api/permissions/%2F/bob", json={"configure": "", "write": "amq.topic", "read": "amq.topic"})
        keys = {"exchange": "amq.topic", "write": "^dev\\.{username}\\.", "read": "^dev\\."}
        await client.put("/api/topic-permissions/%2F/bob", json=keys)
        host, port = gateway.listening["mqtt"]
        async with aiomqtt.Client(
            host, port, username="bob", password="secret", protocol=aiomqtt.ProtocolVersion.V5
        ) as device:
            assert [code.value for code in await device.subscribe([("dev/#", 0), ("#", 0)])] == [0, 0x87]
            await device.publish("dev/ann/a", b"forged", qos=1)
            await device.publish("dev/bob/a", b"mine", qos=1)
            message = await asyncio.wait_for(anext(device.messages), 10)
            assert message.payload == b"mine"


async def test_users_of_the_settings_are_told_and_not_changed(tmp_path):
    rights = {"users": {"ann": {"password_hash": QUICK, "tags": ["administrator"]}}}
    async with managed_gateway(tmp_path, rights=rights) as (_, client):
        found = (await client.get("/api/users/ann")).json()
        assert (found["password_hash"], found["lmq"]["of_settings"]) == ("", True)
        for answer in (
            await client.put("/api/users/ann", json=BOB),
            await client.delete("/api/users/ann"),
            await client.post("/api/users/bulk-delete", json={"users": ["ann"]}),
            await client.put("/api/lmq/users/ann/tags", json={"tags": []}),
        ):
            assert answer.status_code == 400
            assert "is one of the settings" in answer.json()["reason"]


@pytest.mark.parametrize(
    "said",
    [
        {"tags": ""},
        {"password": "", "tags": ""},
        {"password_hash": "AAAA", "tags": ""},
        {"password_hash": "!", "tags": ""},
        {"password_hash": "AAAA", "hashing_algorithm": "rabbit_password_hashing_md5", "tags": ""},
        {"password_hash": "scrypt$1$2", "tags": ""},
        {"password": "x"},
        {"password": "x", "tags": "", "secret": "short"},
    ],
)
async def test_what_is_no_user_is_refused(tmp_path, said):
    async with managed_gateway(tmp_path) as (_, client):
        assert (await client.put("/api/users/bob", json=said)).status_code == 400
        assert (await client.get("/api/users")).json() == []


async def test_only_administrators_see_and_change_users(tmp_path):
    rights = {"users": {"ann": {"password_hash": QUICK, "tags": ["monitoring"]}}}
    async with managed_gateway(tmp_path, rights=rights, auth=("ann", "secret")) as (_, client):
        for path in ("/api/users", "/api/permissions", "/api/topic-permissions"):
            assert (await client.get(path)).status_code == 401
        assert (await client.put("/api/users/bob", json=BOB)).status_code == 401
        assert (await client.delete("/api/users/ann")).status_code == 401


async def test_sessions_of_a_deleted_user_end(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        for name in ("ann", "bob"):
            await client.put(f"/api/users/{name}", json=BOB)
            await client.put(f"/api/permissions/%2F/{name}", json=ALL)
            for number in range(2):
                login = {"username": name, "password": "secret", "identifier": f"{name}-{number}"}
                async with aiomqtt.Client(*gateway.listening["mqtt"], **login, clean_session=False) as device:
                    await device.subscribe("a/#", qos=1)
        sessions = gateway.doors["mqtt"].sessions
        login = {"username": "bob", "password": "secret", "identifier": "bob-1"}
        with contextlib.suppress(aiomqtt.MqttError):
            async with aiomqtt.Client(*gateway.listening["mqtt"], **login, clean_session=False):
                await client.delete("/api/users/bob")
                async with asyncio.timeout(10):
                    while any(session.owner == b"bob" for session in sessions):
                        await asyncio.sleep(0)
        assert {session.client_id for session in sessions} == {b"ann-0", b"ann-1"}


BOBS = AccessKeys("bob", "a secret of bob's")


async def ask_rocketmq(streams):
    """Return the code of the answer to a question that bob signs."""
    reader, writer = streams
    writer.write(signed(request_frame(105, topic="TBW102"), BOBS))
    answer = await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
    end = 4 + int.from_bytes(answer[1:4])
    return decode_header(answer[0], answer[4:end], answer[end:]).code


async def test_connections_of_a_deleted_user_end_at_each_door_and_no_others_and_it_comes_in_no_more(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        for name in ("ann", "bob"):
            await client.put(f"/api/users/{name}", json={**BOB, "secret": BOBS.secret_key})
            await client.put(f"/api/permissions/%2F/{name}", json=ALL)
        address = gateway.listening["mqtt"]
        old, new, anns = [await asyncio.open_connection(*address) for _ in range(3)]
        old[1].write(mqtt.connect(b"old", user=b"bob", password=b"secret"))
        new[1].write(mqtt.connect_5(b"new", user=b"bob", password=b"secret"))
        anns[1].write(mqtt.connect(b"anns", user=b"ann", password=b"secret"))
        assert [(await one[0].readexactly(4))[3] for one in (old, anns)] == [0, 0]
        assert (await new[0].readexactly(4))[3] == 0
        url = "amqp://bob:secret@{}:{}/".format(*gateway.listening["amqp"])
        amqp = await aio_pika.connect(url)
        rocketmq = await asyncio.open_connection(*gateway.listening["broker"])
        assert await ask_rocketmq(rocketmq) == 0
        assert (await client.delete("/api/users/bob")).status_code == 204
        async with asyncio.timeout(10):
            assert await old[0].read() == b""
            assert b"\xe0\x01\x87" in (await new[0].read()).replace(b"\xe0\x02\x87\x00", b"\xe0\x01\x87")
            assert await rocketmq[0].read() == b""
            while not amqp.transport.connection.is_closed:
                await asyncio.sleep(0)
        anns[1].write(mqtt.publish(b"a", b"1", qos=1, packet_id=1))
        assert await anns[0].readexactly(4) == mqtt.puback(1)
        again = await asyncio.open_connection(*address)
        again[1].write(mqtt.connect(b"old", user=b"bob", password=b"secret"))
        assert await again[0].read() == mqtt.connack(4)
        with pytest.raises(aiormq.exceptions.AMQPError):
            await aio_pika.connect(url)
        other = await asyncio.open_connection(*gateway.listening["broker"])
        assert await ask_rocketmq(other) == 16
        assert (await client.get("/api/whoami", auth=("bob", "secret"))).status_code == 401
        for _, writer in (old, new, anns, rocketmq, again, other):
            writer.close()


async def test_a_hash_is_made_that_definitions_take(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        made = (await client.get("/api/auth/hash_password/se%2Fcret")).json()["ok"]
        raw = base64.b64decode(made)
        assert raw[4:] == hashlib.sha256(raw[:4] + b"se/cret").digest()
        assert (await client.get("/api/auth/hash_password/se%2Fcret")).json()["ok"] != made
