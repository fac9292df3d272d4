"""JSON Web Tokens by clients of each door: which come in, what they may do, and when they have to go."""

from __future__ import annotations

import asyncio
import json
import time

import aio_pika
import aiomqtt
import aiormq
import httpx
import pika
import pytest

from gateway.runtime.loop import Clock
from gateway.settings.models import AuthSettings, SettingsError
from tests.support import mqtt
from tests.support.admin import make_client, make_view
from tests.support.gateway import make_settings, running_gateway
from tests.support.http_server import HttpServer
from tests.support.tokens import SECRET, key_for, make, public_jwk, public_pem

pytestmark = pytest.mark.asyncio


class ShiftedClock(Clock):
    """The machine's clock, and some seconds more."""

    shift_s = 0

    def read_ns(self):
        return time.time_ns() + self.shift_s * 1_000_000_000


def _auth(**jwt):
    said = {"algorithms": ["HS256"], "secret": SECRET, "groups_claim": "groups", "tags_claim": "tags", **jwt}
    rules = [{"permit": "allow", "groups": ["plant"], "topics": ["plant/#"]}, {"permit": "allow", "names": ["q"]}]
    return AuthSettings.model_validate({"mqtt_anonymous": False, "default": "deny", "rules": rules, "jwt": said})


def _token(algorithm="HS256", **claims):
    return make({"sub": "ann", "exp": int(time.time()) + 20, "groups": ["plant"], **claims}, algorithm).decode()


async def _open(gateway, connect):
    reader, writer = await asyncio.open_connection(*gateway.listening["mqtt"])
    writer.write(connect)
    return reader, writer


@pytest.mark.parametrize("version", [aiomqtt.ProtocolVersion.V311, aiomqtt.ProtocolVersion.V5])
async def test_mqtt_client_comes_in_by_a_token_and_goes_by_the_rules_of_its_group(tmp_path, version):
    async with running_gateway(tmp_path, auth=_auth()) as gateway:
        host, port = gateway.listening["mqtt"]
        async with aiomqtt.Client(host, port, username="any", password=_token(), protocol=version) as client:
            await client.subscribe("plant/#", qos=1)
            codes = await client.subscribe("other/#", qos=1)
            assert next(code if isinstance(code, int) else code.value for code in codes) >= 0x80
            await client.publish("plant/1", "1", qos=1)
            async for message in client.messages:
                assert (message.topic.value, message.payload) == ("plant/1", b"1")
                break
        with pytest.raises(aiomqtt.MqttError):
            async with aiomqtt.Client(host, port, username="any", password=_token(exp=1), protocol=version):
                pass


async def test_mqtt_5_client_needs_no_user_name(tmp_path):
    async with running_gateway(tmp_path, auth=_auth()) as gateway:
        reader, writer = await _open(gateway, mqtt.connect_5(password=_token().encode()))
        assert (await reader.readexactly(4))[3] == 0
        writer.close()


async def test_amqp_client_comes_in_by_a_token(tmp_path):
    async with running_gateway(tmp_path, auth=_auth()) as gateway:
        host, port = gateway.listening["amqp"]
        async with await aio_pika.connect(host=host, port=port, login="any", password=_token()) as connection:
            channel = await connection.channel()
            await channel.declare_queue("q")
            with pytest.raises(aiormq.exceptions.ChannelAccessRefused):
                await channel.declare_queue("other")
        with pytest.raises(aiormq.exceptions.AMQPError):
            await aio_pika.connect(host=host, port=port, login="any", password=_token(exp=1))


async def test_admin_api_takes_a_token_as_password_and_as_bearer(tmp_path):
    async with running_gateway(tmp_path, auth=_auth()) as gateway:
        view = make_view(gateway)
        token = _token(tags=["administrator"])
        for auth, headers in ((("any", token), {}), (None, {"Authorization": f"Bearer {token}"})):
            async with make_client(view, auth=auth) as client:
                answer = await client.get("/api/whoami", headers=headers)
                assert answer.json()["name"] == "ann"
                assert answer.json()["tags"] == ["administrator"]
        async with make_client(view, auth=None) as client:
            for wrong in (_token(), _token(tags=["administrator"], exp=1), "secret", "", "ü"):
                headers = httpx.Headers({"Authorization": f"Bearer {wrong}"}, encoding="utf-8")
                assert (await client.get("/api/whoami", headers=headers)).status_code == 401


@pytest.mark.slow
async def test_end_of_a_token_ends_its_connections_and_no_others(tmp_path, monkeypatch):
    monkeypatch.setattr("gateway.app.Clock", ShiftedClock)
    async with running_gateway(tmp_path, auth=_auth()) as gateway:
        short, long = _token(), _token(sub="bob", exp=int(time.time()) + 1_000)
        ended, ended_writer = await _open(gateway, mqtt.connect_5(b"ended", password=short.encode()))
        old, old_writer = await _open(gateway, mqtt.connect(b"old", user=b"", password=short.encode()))
        stays, stays_writer = await _open(gateway, mqtt.connect(b"stays", user=b"", password=long.encode()))
        host, port = gateway.listening["amqp"]
        connection = await aio_pika.connect(host=host, port=port, login="any", password=short)
        closed = asyncio.Event()
        connection.close_callbacks.add(lambda *_: closed.set())
        for reader in (old, stays):
            assert await reader.readexactly(4) == mqtt.connack()
        assert (await ended.readexactly(4))[3] == 0
        monkeypatch.setattr(ShiftedClock, "shift_s", 21)
        async with asyncio.timeout(10):
            assert b"\xe0\x01\x87" in (await ended.read()).replace(b"\xe0\x02\x87\x00", b"\xe0\x01\x87")
            assert await old.read() == b""
            await closed.wait()
        stays_writer.write(mqtt.publish(b"plant/1", b"1", qos=1, packet_id=1))
        assert await stays.readexactly(4) == mqtt.puback(1)
        again, again_writer = await _open(gateway, mqtt.connect(b"again", user=b"", password=short.encode()))
        assert await again.read() == mqtt.connack(4)
        for writer in (ended_writer, old_writer, stays_writer, again_writer):
            writer.close()


async def test_session_of_a_token_user_is_not_another_users(tmp_path):
    async with running_gateway(tmp_path, auth=_auth()) as gateway:
        session = mqtt.connect(b"dev", clean=False, user=b"", password=_token().encode())
        reader, writer = await _open(gateway, session)
        assert await reader.readexactly(4) == mqtt.connack()
        writer.write(b"\xe0\x00")
        assert await reader.read() == b""
        other = mqtt.connect(b"dev", clean=True, user=b"", password=_token(sub="bob").encode())
        reader, stranger = await _open(gateway, other)
        assert await reader.read() == mqtt.connack(5)
        reader, back = await _open(gateway, session)
        assert await reader.readexactly(4) == mqtt.connack(session_present=True)
        for one in (writer, stranger, back):
            one.close()


async def test_keys_are_read_again_and_wrong_ones_change_nothing(tmp_path):
    path = tmp_path / "key.pem"
    path.write_bytes(public_pem(key_for("ES256")))
    auth = _auth(algorithms=["ES256", "EdDSA"], secret="", public_key=path)
    async with running_gateway(tmp_path / "data", auth=auth) as gateway:

        async def is_let_in(algorithm):
            connect = mqtt.connect(algorithm.encode(), user=b"", password=_token(algorithm).encode())
            reader, writer = await _open(gateway, connect)
            code = (await reader.readexactly(4))[3]
            writers.append(writer)
            return code == 0, reader

        writers = []
        letting, reader = await is_let_in("ES256")
        assert letting
        path.write_bytes(b"nothing")
        with pytest.raises(SettingsError, match=r"auth\.jwt\.public_key"):
            await gateway.reload(make_settings(tmp_path / "data", auth=auth))
        assert (await is_let_in("EdDSA"))[0] is False
        writers[0].write(b"\xc0\x00")
        assert await reader.readexactly(2) == b"\xd0\x00"
        path.write_bytes(public_pem(key_for("EdDSA")))
        await gateway.reload(make_settings(tmp_path / "data", auth=auth))
        assert await reader.read() == b""  # its key is gone
        assert (await is_let_in("EdDSA"))[0]
        assert (await is_let_in("ES256"))[0] is False
        for writer in writers:
            writer.close()


async def test_token_that_ends_while_its_client_waits_for_its_session_lets_nobody_in(tmp_path, monkeypatch):
    async with running_gateway(tmp_path, auth=_auth()) as gateway:
        monkeypatch.setattr(gateway.authenticator, "may_stay", lambda *_: False)
        reader, writer = await _open(gateway, mqtt.connect(b"c", user=b"", password=_token().encode()))
        assert await reader.read() == mqtt.connack(5)
        writer.close()


@pytest.mark.slow
async def test_keys_of_tokens_may_be_on_the_web(tmp_path):
    async with HttpServer(lambda asked: json.dumps({"keys": [public_jwk("ES256", kid="1")]})) as server:
        said = {"algorithms": ["ES256"], "secret": "", "jwks_url": server.url}
        async with running_gateway(tmp_path, auth=_auth(**said)) as gateway:
            host, port = gateway.listening["mqtt"]
            made = make({"sub": "ann", "exp": int(time.time()) + 20, "groups": ["plant"]}, "ES256", kid="1").decode()
            async with aiomqtt.Client(host, port, username="any", password=made) as client:
                await client.publish("plant/1", "1", qos=1)


async def test_amqp_clients_put_the_end_of_their_token_off(tmp_path, monkeypatch):
    monkeypatch.setattr("gateway.app.Clock", ShiftedClock)
    async with running_gateway(tmp_path, auth=_auth()) as gateway:
        host, port = gateway.listening["amqp"]
        connection = await aio_pika.connect(host=host, port=port, login="any", password=_token())
        closed = asyncio.Event()
        connection.close_callbacks.add(lambda *_: closed.set())
        await connection.update_secret(_token(exp=int(time.time()) + 1_000), reason="it ends")
        channel = await connection.channel()
        monkeypatch.setattr(ShiftedClock, "shift_s", 21)
        gateway.timer.run_due(gateway.clock.now_ms())
        await channel.declare_queue("q")
        with pytest.raises((aiormq.exceptions.AMQPError, RuntimeError, asyncio.CancelledError)):
            await connection.update_secret(_token(sub="bob", exp=int(time.time()) + 1_000), timeout=5)
        async with asyncio.timeout(10):
            await closed.wait()


async def test_a_client_of_pika_puts_the_end_of_its_token_off(tmp_path):
    async with running_gateway(tmp_path, auth=_auth()) as gateway:
        host, port = gateway.listening["amqp"]

        def work():
            credentials = pika.PlainCredentials("any", _token())
            with pika.BlockingConnection(pika.ConnectionParameters(host, port, credentials=credentials)) as connection:
                connection.update_secret(_token(exp=int(time.time()) + 1_000), "it ends")
                connection.channel().queue_declare("q")

        await asyncio.to_thread(work)


@pytest.mark.parametrize("door", ["mqtt", "amqp", "basic", "bearer"])
async def test_the_log_says_what_is_wrong_with_a_token_where_the_login_is_refused(tmp_path, caplog, door):
    token = _token(exp=int(time.time()) - 5)
    async with running_gateway(tmp_path, auth=_auth()) as gateway:
        if door == "mqtt":
            host, port = gateway.listening["mqtt"]
            with pytest.raises(aiomqtt.MqttError):
                await aiomqtt.Client(host, port, username="any", password=token).__aenter__()
        elif door == "amqp":
            with pytest.raises(aiormq.exceptions.ProbableAuthenticationError):
                await aiormq.connect("amqp://any:{}@{}:{}/".format(token, *gateway.listening["amqp"]))
        else:
            async with make_client(make_view(gateway), auth=("any", token) if door == "basic" else None) as client:
                headers = {} if door == "basic" else {"Authorization": f"Bearer {token}"}
                assert (await client.get("/api/whoami", headers=headers)).status_code == 401
    refused = [line for line in caplog.messages if line.startswith("login refused")]
    assert len(refused) == 1
    assert refused[0].endswith("reason=the token is refused: it has expired (exp)")
