"""Listeners that name the authenticators that count there: which clients come in by which, at each door."""

from __future__ import annotations

import asyncio
import base64
import gc
import time

import aio_pika
import aiormq
import httpx
import pytest

from gateway.settings.listen import AdminSettings, find_address
from gateway.settings.models import AmqpSettings, AuthSettings, MqttSettings, RocketmqSettings
from lmq.remoting.commands import decode_header
from lmq.remoting.signature import AccessKeys
from tests.support import mqtt
from tests.support.certificates import authority_file, client_context, client_files
from tests.support.gateway import ANY_PORT, running_gateway
from tests.support.http_server import HttpServer
from tests.support.listening import secure
from tests.support.logins import quick_hash
from tests.support.mqtt_5 import P, encoded
from tests.support.rocketmq import request_frame, signed
from tests.support.scram import ScramClient
from tests.support.tokens import SECRET, make

pytestmark = pytest.mark.asyncio

ANN = AccessKeys("ann", "a long secret of ann's")
USERS = {"ann": {"password_hash": quick_hash("secret"), "secret": ANN.secret_key, "tags": ["administrator"]}}
refuses_amqp = pytest.mark.filterwarnings(  # aiormq leaves a coroutine of a refused connection to the collector
    "ignore::pytest.PytestUnraisableExceptionWarning"
)
ACCEPTED, WRONG, NO_METHOD, NOT_AUTHORIZED = 0, 0x86, 0x8C, 0x87


def make_auth(**more):
    jwt = {"algorithms": ["HS256"], "secret": SECRET, "tags_claim": "tags"}
    return AuthSettings.model_validate({"users": USERS, "jwt": jwt, **more})


def at(*authenticators, **more):
    return {"address": ANY_PORT, "authenticators": authenticators, **more}


def token(**claims):
    return make({"sub": "zoe", "exp": int(time.time()) + 3_600, **claims})


def addresses(gateway, name):
    """Return where each listener of a name is, in the order of the settings."""
    said = [line.split() for line in gateway.lines()]
    return [find_address(address) for _, found, address in said if found == name]


async def mqtt_code(address, packet=None, *, context=None, **said):
    """Return what a CONNECT of MQTT 5 is answered."""
    reader, writer = await asyncio.open_connection(*address, ssl=context)
    writer.write(packet or mqtt.connect_5(**said))
    answer = await read_packet(reader)
    writer.close()
    return answer[3]


async def read_packet(reader):
    data = await reader.readexactly(2)
    while data[-1] & 0x80:
        data += await reader.readexactly(1)
    size = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(data[1:]))
    return data + await reader.readexactly(size)


async def amqp_is_let_in(address, login, password):
    host, port = address
    try:
        connection = await aio_pika.connect(host=host, port=port, login=login, password=password)
    except aiormq.exceptions.AMQPError:
        return False
    await connection.close()
    return True


async def test_mqtt_clients_come_in_by_what_counts_where_they_come(tmp_path):
    listen = [ANY_PORT, at("users"), at("anonymous"), at("jwt"), at("users", "jwt", "anonymous")]
    auth = make_auth(mqtt_anonymous=False)
    async with running_gateway(tmp_path, auth=auth, mqtt=MqttSettings(listen=listen)) as gateway:
        nobody, user, wrong = {}, {"user": b"ann", "password": b"secret"}, {"user": b"ann", "password": b"no"}
        by_token = {"user": b"x", "password": token()}
        stranger = {"user": b"eve", "password": b"x"}
        expected = [  # of each listener: nobody, the user, a wrong password, a token, a name that is no user's
            (NOT_AUTHORIZED, ACCEPTED, WRONG, ACCEPTED, WRONG),
            (NOT_AUTHORIZED, ACCEPTED, WRONG, WRONG, WRONG),
            (ACCEPTED, ACCEPTED, ACCEPTED, ACCEPTED, ACCEPTED),  # no name means anything here: all are nobody
            (NOT_AUTHORIZED, WRONG, WRONG, ACCEPTED, WRONG),
            (ACCEPTED, ACCEPTED, WRONG, ACCEPTED, WRONG),
        ]
        for address, codes in zip(addresses(gateway, "mqtt"), expected, strict=True):
            found = [await mqtt_code(address, **said) for said in (nobody, user, wrong, by_token, stranger)]
            assert tuple(found) == codes, address


async def test_name_means_nothing_where_all_are_nobody(tmp_path):
    """So a rule for a user is for nobody there, and the user's session is not taken."""
    auth = make_auth(mqtt_anonymous=False, default="deny", rules=[{"permit": "allow", "users": ["ann"]}])
    settings = MqttSettings(listen=[at("anonymous"), at("users")])
    async with running_gateway(tmp_path, auth=auth, mqtt=settings) as gateway:
        first, second = addresses(gateway, "mqtt")
        for address, code in ((first, NOT_AUTHORIZED), (second, 0)):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(
                mqtt.connect_5(b"c-%d" % code, user=b"ann", password=b"secret") + mqtt.subscribe_5(1, (b"t", 0))
            )
            await read_packet(reader)
            assert (await read_packet(reader))[-1] == code
            writer.close()


async def test_scram_and_tokens_by_mechanism_are_for_listeners_where_they_count(tmp_path):
    settings = MqttSettings(listen=[at("users"), at("jwt")])
    async with running_gateway(tmp_path, auth=make_auth(), mqtt=settings) as gateway:
        bearer = b"n,,\x01auth=Bearer " + token() + b"\x01\x01"
        for method, data, expected in (
            (b"SCRAM-SHA-256", ScramClient("ann", "x").first, ("asked", NO_METHOD)),
            (b"OAUTHBEARER", bearer, (NO_METHOD, ACCEPTED)),
        ):
            packet = mqtt.connect_5(properties=encoded((P.AUTH_METHOD, method), (P.AUTH_DATA, data)))
            found = []
            for address in addresses(gateway, "mqtt"):
                reader, writer = await asyncio.open_connection(*address)
                writer.write(packet)
                answer = await read_packet(reader)
                found.append("asked" if answer[0] == 0xF0 else answer[3])
                writer.close()
            assert tuple(found) == expected


async def test_public_port_takes_certificates_alone_and_the_one_of_this_machine_users(tmp_path):
    public = secure(client_ca=authority_file(), client_certificate="optional", user_from="common_name")
    settings = MqttSettings(listen=[{**public, "authenticators": ["certificate"]}, at("users", "anonymous")])
    async with running_gateway(tmp_path, auth=make_auth(), mqtt=settings) as gateway:
        (tls,), (plain,) = addresses(gateway, "mqtts"), addresses(gateway, "mqtt")
        by_certificate = client_context(shows=client_files("ann"))
        said = {"user": b"ann", "password": b"secret"}
        assert await mqtt_code(tls, context=by_certificate) == ACCEPTED
        assert await mqtt_code(tls, context=client_context(), **said) == WRONG
        assert await mqtt_code(tls, context=client_context()) == NOT_AUTHORIZED
        assert await mqtt_code(plain, **said) == ACCEPTED
        assert await mqtt_code(plain) == ACCEPTED


@refuses_amqp
async def test_back_ends_count_by_their_names(tmp_path):
    def tell(word):
        return lambda asked: "allow" if asked.fields["password"] == word else "deny"

    async with HttpServer(tell("one")) as one, HttpServer(tell("two")) as two:
        backends = [{"kind": "http", "url": one.url, "name": "plant"}, {"kind": "http", "url": two.url}]
        listen = [at("plant"), at("http"), at("backends"), at("users")]
        settings = {"mqtt": MqttSettings(listen=listen), "amqp": AmqpSettings(listen=listen)}
        async with running_gateway(tmp_path, auth=make_auth(backends=backends), **settings) as gateway:
            expected = [(True, False), (False, True), (True, False), (False, False)]
            for door in ("mqtt", "amqp"):
                found = []
                for address in addresses(gateway, door):
                    both = []
                    for word in ("one", "two"):
                        if door == "mqtt":
                            code = await mqtt_code(address, user=b"bob", password=word.encode())
                            both.append(code == ACCEPTED)
                        else:
                            both.append(await amqp_is_let_in(address, "bob", word))
                    found.append(tuple(both))
                assert found == expected, door
    gc.collect()


@refuses_amqp
async def test_amqp_clients_come_in_by_what_counts_where_they_come(tmp_path):
    settings = AmqpSettings(listen=[ANY_PORT, at("users"), at("guest"), at("jwt")])
    async with running_gateway(tmp_path, auth=make_auth(amqp_guest=False), amqp=settings) as gateway:
        tries = (("guest", "guest"), ("ann", "secret"), ("x", token().decode()), ("eve", "x"))
        found = [
            tuple([await amqp_is_let_in(address, *said) for said in tries]) for address in addresses(gateway, "amqp")
        ]
        assert found == [
            (False, True, True, False),
            (False, True, False, False),
            (True, False, False, False),
            (False, False, True, False),
        ]
    gc.collect()


async def remoting_code(address, frame):
    reader, writer = await asyncio.open_connection(*address)
    writer.write(frame)
    answer = await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
    writer.close()
    head = int.from_bytes(answer[:4])
    end = 4 + (head & 0xFFFFFF)
    return decode_header(head >> 24, answer[4:end], answer[end:]).code


async def test_rocketmq_clients_come_in_by_what_counts_where_they_come(tmp_path):
    listen = [ANY_PORT, at("users"), at("anonymous")]
    settings = RocketmqSettings(namesrv="off", broker=listen)
    async with running_gateway(tmp_path, auth=make_auth(rocketmq_anonymous=False), rocketmq=settings) as gateway:
        ask = request_frame(105, topic="TBW102")
        found = []
        for address in addresses(gateway, "broker"):
            frames = (ask, signed(ask, ANN), signed(ask, AccessKeys("ann", "wrong")))
            found.append(tuple([await remoting_code(address, frame) for frame in frames]))
        assert found == [(16, 0, 16), (16, 0, 16), (0, 0, 0)]


async def test_admin_api_goes_by_what_counts_where_it_is_asked(tmp_path):
    listen = [
        at("users"),
        at("api_tokens"),
        at("guest"),
        at("jwt"),
        at("anonymous"),
        at("users", "anonymous", "api_tokens"),
    ]
    auth = make_auth(admin_anonymous=False, amqp_guest=False)
    async with running_gateway(tmp_path, auth=auth, admin=AdminSettings(listen=listen)) as gateway:
        text = gateway.api_tokens.add("ci", "ann", ("administrator",), ends_at_ms=1 << 60, now_ms=0)
        tries = {
            "nobody": None,
            "user": basic("ann", "secret"),
            "guest": basic("guest", "guest"),
            "jwt": f"Bearer {token(tags=['administrator']).decode()}",
            "api": f"Bearer {text}",
        }
        found = []
        async with httpx.AsyncClient(timeout=60) as client:
            for host, port in addresses(gateway, "admin"):
                let_in = []
                for name, said in tries.items():
                    headers = {} if said is None else {"Authorization": said}
                    answer = await client.get(f"http://{host}:{port}/api/overview", headers=headers)
                    if answer.status_code == 200:
                        let_in.append(name)
                found.append(let_in)
        assert found == [["user"], ["api"], ["guest"], ["jwt"], ["nobody"], ["nobody", "user", "api"]]


def basic(user, password):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


async def test_will_of_nobody_is_published_after_a_restart_where_some_listener_lets_them_in(tmp_path):
    auth = make_auth(mqtt_anonymous=False)
    for names, is_let in ((["anonymous", "users"], True), (["users"], False)):
        settings = MqttSettings(listen=[at(*names)])
        async with running_gateway(tmp_path / names[0], auth=auth, mqtt=settings) as gateway:
            assert (gateway.authenticator.find_rights("mqtt", "") is not None) is is_let
            said = gateway.authenticator.describe(["mqtt"])
            assert any("setting=listen.authenticators" in line for line in said) is is_let


async def test_who_came_as_nobody_stays_where_the_listener_says_so_whatever_settings_are_read_again(tmp_path):
    settings = MqttSettings(listen=[ANY_PORT, at("anonymous")])
    async with running_gateway(tmp_path, auth=make_auth(), mqtt=settings) as gateway:
        streams = []
        for address in addresses(gateway, "mqtt"):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(mqtt.connect_5(b"c%d" % len(streams)))
            await read_packet(reader)
            streams.append((reader, writer))
        await gateway.reload(gateway.settings.model_copy(update={"auth": make_auth(mqtt_anonymous=False)}))
        first, second = streams
        assert (await first[0].read())[0] == 0xE0  # DISCONNECT
        first[1].close()
        second[1].write(b"\xc0\x00")
        assert await second[0].readexactly(2) == b"\xd0\x00"
        second[1].close()
