"""Back ends that know users: real servers of each kind, clients of each door."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import tomllib

import aio_pika
import aiomqtt
import aiormq
import pytest

from gateway.settings.models import AuthSettings
from tests.support import mqtt
from tests.support.admin import make_client, make_view
from tests.support.gateway import make_settings, running_gateway
from tests.support.hostile_postgres import BEGIN, END, HostilePostgres, row
from tests.support.http_server import HttpServer
from tests.support.logins import quick_hash
from tests.support.slapd import ADMIN, PEOPLE, SLAPD, Slapd
from tests.support.sources import ROOT

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]

RULES = [
    {"permit": "allow", "groups": ["plant"], "topics": ["plant/#"]},
    {"permit": "allow", "groups": ["plant"], "names": ["q"]},
]


def make_auth(*backends, **more):
    said = {"mqtt_anonymous": False, "default": "deny", "rules": RULES, "backends": backends, **more}
    return AuthSettings.model_validate(said)


def tell(asked):
    """Answer as RabbitMQ's users write it."""
    is_right = asked.fields["username"] == "ann" and asked.fields["password"] == "secret"
    return "allow plant administrator" if is_right else "deny"


async def connect_mqtt(gateway, user="ann", password="secret", **more):
    host, port = gateway.listening["mqtt"]
    async with aiomqtt.Client(host, port, username=user, password=password, **more) as client:
        await client.subscribe("plant/#", qos=1)
        await client.publish("plant/1", "1", qos=1)
        return (await anext(client.messages)).topic.value


async def check_doors(gateway):
    """See that ann comes in by each door, goes by the rules of its group, and that nobody else does."""
    assert await connect_mqtt(gateway) == "plant/1"
    host, port = gateway.listening["amqp"]
    async with await aio_pika.connect(host=host, port=port, login="ann", password="secret") as connection:
        channel = await connection.channel()
        await channel.declare_queue("q")
        with pytest.raises(aiormq.exceptions.ChannelAccessRefused):
            await channel.declare_queue("other")
    for user, password in (("ann", "wrong"), ("bob", "secret"), ("ann", "")):
        with pytest.raises(aiomqtt.MqttError):
            await connect_mqtt(gateway, user, password)
    with pytest.raises(aiormq.exceptions.AMQPError):
        await aio_pika.connect(host=host, port=port, login="ann", password="wrong")


async def test_clients_of_each_door_come_in_by_a_web_server(tmp_path):
    async with HttpServer(tell) as server:
        auth = make_auth({"kind": "http", "url": server.url, "admin_tags": True})
        async with running_gateway(tmp_path, auth=auth) as gateway:
            await check_doors(gateway)
            assert server.connections == 1
            async with make_client(make_view(gateway), auth=("ann", "secret")) as client:
                assert (await client.get("/api/whoami")).json()["tags"] == ["administrator"]


async def test_answer_of_a_web_server_says_what_its_user_may_do(tmp_path):
    def tell_rights(asked):
        acl = [{"permission": "allow", "action": "all", "topic": "plant/#"}]
        return json.dumps({"result": "allow", "acl": acl, "rules": [{"permit": "allow", "names": ["q"]}]})

    async with HttpServer(tell_rights) as server:
        auth = make_auth({"kind": "http", "url": server.url}, rules=[])
        async with running_gateway(tmp_path, auth=auth) as gateway:
            assert await connect_mqtt(gateway) == "plant/1"
            host, port = gateway.listening["amqp"]
            async with await aio_pika.connect(host=host, port=port, login="ann", password="secret") as connection:
                channel = await connection.channel()
                queue = await channel.declare_queue("q")
                with pytest.raises(aiormq.exceptions.ChannelAccessRefused):
                    await queue.bind("amq.topic", "other.#")


async def test_rules_of_the_manual_let_a_client_publish_and_subscribe_at_amqp_too(tmp_path):
    manual = (ROOT / "docs" / "security.md").read_text()
    texts = [text for text in manual.split("```") if text.startswith("toml") and 'topics = ["plant/1/#"]' in text]
    found = [tomllib.loads(text.removeprefix("toml"))["auth"] for text in texts]
    assert len(found) == 2
    async with HttpServer(lambda asked: "allow plant-1") as server:
        for number, said in enumerate(found):
            auth = make_auth({"kind": "http", "url": server.url}, rules=said["rules"], default=said["default"])
            async with running_gateway(tmp_path / str(number), auth=auth) as gateway:
                host, port = gateway.listening["amqp"]
                async with await aio_pika.connect(host=host, port=port, login="ann", password="secret") as connection:
                    channel = await connection.channel()
                    topics = await channel.get_exchange("amq.topic")
                    queue = await channel.declare_queue("plant-1.q")
                    await queue.bind(topics, "plant.1.#")
                    await topics.publish(aio_pika.Message(b"1"), "plant.1.t")
                    assert (await queue.get()).body == b"1"
                    with pytest.raises(aiormq.exceptions.ChannelAccessRefused):
                        await topics.publish(aio_pika.Message(b"1"), "plant.2.t")


async def test_clients_of_each_door_come_in_by_a_table_of_sqlite(tmp_path):
    path = tmp_path / "users.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE users (name TEXT, hash TEXT, groups TEXT)")
        connection.execute("INSERT INTO users VALUES ('ann', ?, 'plant')", (quick_hash("secret"),))
    connection.close()
    query = "SELECT hash, groups FROM users WHERE name = ${username}"
    auth = make_auth({"kind": "sql", "dsn": f"sqlite:{path}", "query": query})
    async with running_gateway(tmp_path / "data", auth=auth) as gateway:
        await check_doors(gateway)


async def test_clients_of_each_door_come_in_by_a_plugin_for_amqtt(tmp_path):
    plugin = {"tests.support.amqtt_plugins.SecretPlugin": {"password": "secret"}}
    auth = make_auth({"kind": "amqtt", "plugins": plugin, "groups": ["plant"]})
    async with running_gateway(tmp_path, auth=auth) as gateway:
        await check_doors(gateway)


@pytest.mark.skipif(SLAPD is None, reason="slapd is not installed here")
async def test_clients_of_each_door_come_in_by_a_directory(tmp_path):
    pytest.importorskip("ldap3")
    said = {"base": PEOPLE, "bind_dn": ADMIN, "bind_password": "admin-secret", "groups_attribute": "departmentNumber"}
    with Slapd(tmp_path) as server:
        auth = make_auth({"kind": "ldap", "url": server.url, "starttls": True, "ca": server.ca, **said})
        async with running_gateway(tmp_path / "gateway", auth=auth) as gateway:
            await check_doors(gateway)


async def test_server_that_goes_away_lets_nobody_in_and_holds_up_nobody_else(tmp_path):
    async def hang(asked):
        await asyncio.sleep(60)

    async with HttpServer(tell) as server:
        auth = make_auth(
            {"kind": "http", "url": server.url, "cache_s": 0, "timeout_ms": 300},
            users={"own": {"password_hash": quick_hash("own"), "groups": ["plant"]}},
        )
        async with running_gateway(tmp_path, auth=auth) as gateway:
            assert await connect_mqtt(gateway) == "plant/1"
            server.answer = hang
            waiting = asyncio.create_task(connect_mqtt(gateway))
            while len(server.asked) < 2:
                await asyncio.sleep(0)
            assert await connect_mqtt(gateway, "own", "own") == "plant/1"
            assert not waiting.done()
            with pytest.raises(aiomqtt.MqttError, match=r"[Uu]navailable"):
                await waiting
            server.answer = tell
            assert await connect_mqtt(gateway) == "plant/1"
            await server.stop()
            with pytest.raises(aiomqtt.MqttError, match=r"[Uu]navailable"):
                await connect_mqtt(gateway)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # aiormq's, of a refused connection
async def test_database_that_goes_away_lets_nobody_in_not_as_anonymous_either(tmp_path):
    path = tmp_path / "users.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE users (name TEXT, hash TEXT, groups TEXT)")
        connection.execute("INSERT INTO users VALUES ('ann', ?, 'plant')", (quick_hash("secret"),))
    connection.close()
    said = {"query": "SELECT hash, groups FROM users WHERE name = ${username}", "timeout_ms": 50, "cache_s": 0}
    auth = make_auth(
        {"kind": "sql", "dsn": f"sqlite:{path}", **said},
        mqtt_anonymous=True,
        default="allow",
        users={"own": {"password_hash": quick_hash("own"), "groups": ["plant"]}},
    )
    async with running_gateway(tmp_path / "data", auth=auth) as gateway:
        host, port = gateway.listening["amqp"]

        async def check_away():
            for user in ("ann", "eve"):
                with pytest.raises(aiomqtt.MqttError, match=r"[Uu]navailable"):
                    await connect_mqtt(gateway, user)
            with pytest.raises(aiormq.exceptions.AMQPError):
                await aio_pika.connect(host=host, port=port, login="ann", password="secret")
            async with make_client(make_view(gateway), auth=("ann", "secret")) as client:
                assert (await client.get("/api/whoami")).status_code == 503
            assert await connect_mqtt(gateway, "own", "own") == "plant/1"
            assert await connect_mqtt(gateway, None, None) == "plant/1"  # that has no name

        assert await connect_mqtt(gateway) == "plant/1"
        other = sqlite3.connect(path)
        other.execute("BEGIN EXCLUSIVE")
        await check_away()
        other.close()
        assert await connect_mqtt(gateway) == "plant/1"
        kept = path.read_bytes()
        path.write_bytes(b"rubbish" * 1_000)
        await check_away()
        path.write_bytes(kept)
        assert await connect_mqtt(gateway) == "plant/1"


async def test_postgresql_that_hangs_or_floods_lets_nobody_in_holds_nobody_up_and_may_recover(tmp_path):
    pytest.importorskip("psycopg")
    good = BEGIN + row(quick_hash("secret").encode(), b"plant") + END

    def flood(sock):
        while True:
            server.send(sock, BEGIN + row(b"h" * 100, b"plant") * 1_000)

    with HostilePostgres(lambda sock: sock.sendall(good)) as server:
        query = "SELECT hash, groups FROM users WHERE name = ${username}"
        asked = {"timeout_ms": 1_000, "cache_s": 0, "requests_max": 2}
        auth = make_auth(
            {"kind": "sql", "dsn": server.dsn, "query": query, **asked},
            users={"own": {"password_hash": quick_hash("own"), "groups": ["plant"]}},
        )
        async with running_gateway(tmp_path, auth=auth) as gateway:
            assert await connect_mqtt(gateway) == "plant/1"
            for answer in (lambda sock: None, flood):
                server.answer = answer
                many = [asyncio.create_task(connect_mqtt(gateway)) for _ in range(6)]  # more than are asked at once
                assert await connect_mqtt(gateway, "own", "own") == "plant/1"
                for outcome in await asyncio.gather(*many, return_exceptions=True):
                    assert isinstance(outcome, aiomqtt.MqttError)
                    assert "navailable" in str(outcome)
                server.answer = lambda sock: sock.sendall(good)
                async with asyncio.timeout(30):  # its threads come back, and none of them for good
                    while await try_to_connect(gateway) != "plant/1":
                        await asyncio.sleep(0)


async def try_to_connect(gateway):
    try:
        return await connect_mqtt(gateway)
    except aiomqtt.MqttError:
        return None


async def test_users_of_a_back_end_that_is_taken_out_have_to_go(tmp_path):
    async with HttpServer(tell) as server:
        auth = make_auth({"kind": "http", "url": server.url})
        async with running_gateway(tmp_path, auth=auth) as gateway:
            host, port = gateway.listening["mqtt"]
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(mqtt.connect(b"c", user=b"ann", password=b"secret"))
            assert await reader.readexactly(4) == mqtt.connack()
            await gateway.reload(
                make_settings(tmp_path, auth=make_auth({"kind": "http", "url": server.url, "cache_s": 1}))
            )
            writer.write(mqtt.publish(b"plant/1", b"1", qos=1, packet_id=1))
            assert await reader.readexactly(4) == mqtt.puback(1)
            await gateway.reload(make_settings(tmp_path, auth=make_auth()))
            assert await reader.read() == b""
            writer.close()
            with pytest.raises(aiomqtt.MqttError):
                await connect_mqtt(gateway)
