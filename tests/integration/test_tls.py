"""Real clients over TLS at every door, and peers that do not speak it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess

import aio_pika
import aiomqtt
import httpx
import pika
import pytest

from lmq import ConnectFailedError, Producer, PullConsumer, SdkError
from tests.support.certificates import authority_file, client_context, client_files, issue, server_files
from tests.support.gateway import ANY_PORT, GatewayProcess
from tests.support.sources import ROOT

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]

WAIT_S = 10
JARS = os.environ.get("LMQ_TEST_ROCKETMQ_LIB", "")  # the folder with the jars of Apache RocketMQ's client


def tls(files=None, **more):
    certificate, key = files or server_files()
    return {"certificate": str(certificate), "key": str(key), **{name: str(value) for name, value in more.items()}}


def secure_gateway(folder, *, files=None, **mqtt):
    """Return a gateway whose doors all have TLS, MQTT also a plain address and what `mqtt` says."""
    plain_too = {"address": ANY_PORT, "tls": tls(files)}
    listens = {
        "LMQ_MQTT__LISTEN": [ANY_PORT, {"address": ANY_PORT, "tls": tls(files, **mqtt)}],
        "LMQ_AMQP__LISTEN": [plain_too],
        "LMQ_ROCKETMQ__NAMESRV": [plain_too],
        "LMQ_ROCKETMQ__BROKER": [plain_too],
    }
    env = {name: json.dumps(value) for name, value in listens.items()}
    return GatewayProcess(folder, env=env, doors=("admin",))


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    with secure_gateway(tmp_path_factory.mktemp("tls")) as running:
        yield running
        assert not any("Traceback" in line for line in running.errors), "".join(running.errors)


def mqtt_client(gateway, name="mqtts", **options):
    host, port = gateway.address(name)
    context = client_context(**options) if name == "mqtts" else None
    return aiomqtt.Client(host, port, tls_context=context, timeout=WAIT_S)


async def round_trip(client, topic, count=100):
    await client.subscribe(topic, qos=1)
    sending = [client.publish(topic, b"%d" % number, qos=1) for number in range(count)]
    await asyncio.gather(*sending)
    got = set()
    async with asyncio.timeout(WAIT_S):
        async for message in client.messages:
            got.add(message.payload)
            if len(got) == count:
                return


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_mqtt_clients_speak_tls(gateway, version):
    async with mqtt_client(gateway, version=version) as client:
        await round_trip(client, f"tls/{version.name}")


async def test_large_messages_cross_between_a_plain_client_and_one_with_tls(gateway):
    body = os.urandom(3_000_000)
    async with mqtt_client(gateway) as secure, mqtt_client(gateway, "mqtt") as plain:
        for sender, receiver in ((secure, plain), (plain, secure)):
            await receiver.subscribe("large", qos=1)
            await sender.publish("large", body, qos=1)
            async with asyncio.timeout(WAIT_S):
                assert (await anext(receiver.messages)).payload == body
            await receiver.unsubscribe("large")


async def test_amqp_clients_speak_tls(gateway):
    host, port = gateway.address("amqps")
    url = f"amqps://guest:guest@{host}:{port}/"
    connection = await aio_pika.connect(url, ssl_context=client_context(), timeout=WAIT_S)
    async with connection:
        channel = await connection.channel()
        queue = await channel.declare_queue("tls-work")
        for number in range(200):
            await channel.default_exchange.publish(aio_pika.Message(b"%d" % number), "tls-work")
        got = []
        async with queue.iterator(timeout=WAIT_S) as messages:
            async for message in messages:
                async with message.process():
                    got.append(message.body)
                if len(got) == 200:
                    break
        assert got == [b"%d" % number for number in range(200)]


async def test_pika_speaks_tls(gateway):
    host, port = gateway.address("amqps")

    def work():
        options = pika.SSLOptions(client_context(), host)
        with pika.BlockingConnection(pika.ConnectionParameters(host, port, ssl_options=options)) as connection:
            channel = connection.channel()
            channel.queue_declare("tls-pika")
            channel.confirm_delivery()
            channel.basic_publish("", "tls-pika", b"hello")
            return channel.basic_get("tls-pika", auto_ack=True)[2]

    assert await asyncio.to_thread(work) == b"hello"


async def test_the_rocketmq_port_takes_both_kinds(gateway):

    host, port = gateway.address("namesrv")
    request = b'{"code":105,"language":"JAVA","version":399,"opaque":7,"flag":0,"extFields":{"topic":"TBW102"}}'
    frame = (len(request) + 4).to_bytes(4) + len(request).to_bytes(4) + request
    for context in (None, client_context()):
        reader, writer = await asyncio.open_connection(host, port, ssl=context)
        writer.write(frame)
        size = int.from_bytes(await asyncio.wait_for(reader.readexactly(4), WAIT_S))
        answer = await asyncio.wait_for(reader.readexactly(size), WAIT_S)
        assert b'"opaque":7' in answer
        writer.close()
        await writer.wait_closed()


async def test_the_admin_door_speaks_https(tmp_path):
    env = {"LMQ_ADMIN__LISTEN": json.dumps([{"address": ANY_PORT, "tls": tls()}])}
    with GatewayProcess(tmp_path, env=env, doors=("mqtt", "amqp", "namesrv", "broker")) as gateway:
        host, port = gateway.address("admin-tls")
        async with httpx.AsyncClient(verify=client_context(), timeout=20) as client:
            answer = await client.get(f"https://{host}:{port}/healthz")
            metrics = (await client.get(f"https://{host}:{port}/metrics")).text
        assert answer.status_code == 200
        assert (
            'lmq_certificate_expires_seconds{address="127.0.0.1:0",host="127.0.0.1",listener="admin-tls"} ' in metrics
        )


async def test_the_sdk_speaks_tls(gateway):
    namesrv = "{}:{}".format(*gateway.address("namesrv"))
    async with Producer(namesrv, tls=client_context()) as producer:
        for number in range(20):
            await producer.send("TlsSdk", b"%d" % number, queue_id=0)
    async with PullConsumer(namesrv, tls=client_context()) as consumer:
        found = (await consumer.pull("TlsSdk", 0, max_count=32, wait_s=WAIT_S)).messages
    assert [message.body for message in found] == [b"%d" % number for number in range(20)]
    async with Producer(namesrv, tls=client_context(trusts="second"), timeout_s=1) as producer:
        with pytest.raises(ConnectFailedError, match=r"(?i)certificate verify failed"):
            await producer.send("TlsSdk", b"x")


@pytest.mark.skipif(not JARS or not shutil.which("java"), reason="LMQ_TEST_ROCKETMQ_LIB names no jars, or no Java")
@pytest.mark.parametrize("tls_enable", ["true", "false"])
async def test_the_official_java_client_speaks_tls(gateway, tls_enable, tmp_path):
    host, port = gateway.address("namesrv")
    command = [
        "java",
        f"-Dtls.enable={tls_enable}",
        f"-Duser.home={tmp_path}",
        "-cp",
        f"{JARS}/*",
        str(ROOT / "tests/integration/JavaRoundTrip.java"),
        f"{host}:{port}",
        "20",
    ]
    run = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=120, check=False)
    assert "got 20" in run.stdout, run.stdout + run.stderr


# Clients that do not get in


async def test_who_does_not_trust_the_server_stays_out_and_nobody_notices(gateway):
    async with mqtt_client(gateway) as client:
        with pytest.raises(ssl.SSLCertVerificationError, match="certificate verify failed"):
            await asyncio.open_connection(*gateway.address("mqtts"), ssl=client_context(trusts="second"))
        await round_trip(client, "still/here", 5)


async def test_an_expired_certificate_of_the_server_is_noticed(tmp_path):
    files = issue(tmp_path / "expired", is_expired=True)
    with (
        secure_gateway(tmp_path / "data", files=files) as gateway,
        pytest.raises(ssl.SSLCertVerificationError, match="certificate has expired"),
    ):
        await asyncio.open_connection(*gateway.address("mqtts"), ssl=client_context())


async def test_clients_need_a_certificate_where_an_authority_is_given(tmp_path):
    with secure_gateway(tmp_path, client_ca=authority_file()) as gateway:
        async with mqtt_client(gateway, shows=client_files()) as client:
            await round_trip(client, "known", 5)
            for shows in (None, client_files(of="second"), client_files(is_expired=True)):
                with pytest.raises(aiomqtt.MqttError):
                    async with mqtt_client(gateway, shows=shows):
                        pass
            await round_trip(client, "still/known", 5)
        gateway.stop()
    refused = [line for line in gateway.errors if "refused connection" in line]
    assert len(refused) == 3, refused
    for line, said in zip(refused, ("did not return a certificate", "verify failed", "has expired"), strict=True):
        assert said in line


@pytest.fixture
def gateway_of_names(tmp_path):
    """A gateway whose users come in by their certificates."""
    named = {"address": ANY_PORT, "tls": {**tls(client_ca=authority_file()), "name_is_user": True}}
    users = {"sensor-1": {"password_env": "UNKNOWN", "may_subscribe": False}, "ann": {"password_env": "UNKNOWN"}}
    env = {name: json.dumps([named]) for name in ("LMQ_MQTT__LISTEN", "LMQ_AMQP__LISTEN", "LMQ_ROCKETMQ__BROKER")}
    env |= {"UNKNOWN": os.urandom(16).hex(), "LMQ_AUTH__USERS": json.dumps(users), "LMQ_AUTH__MQTT_ANONYMOUS": "false"}
    env["LMQ_AUTH__ROCKETMQ_ANONYMOUS"] = "false"
    with GatewayProcess(tmp_path, env=env, doors=("namesrv", "admin")) as gateway:
        yield gateway


async def test_mqtt_clients_are_who_their_certificate_says(gateway_of_names):
    async with mqtt_client(gateway_of_names, shows=client_files("ann")) as ann:
        await ann.subscribe("measured", qos=1)
        async with mqtt_client(gateway_of_names, shows=client_files("sensor-1")) as sensor:
            await sensor.publish("measured", b"1", qos=1)
            assert [code.value for code in await sensor.subscribe("measured")] == [128]
        async with asyncio.timeout(WAIT_S):
            assert (await anext(ann.messages)).payload == b"1"
    with pytest.raises(aiomqtt.MqttError, match="Not authorized"):
        async with mqtt_client(gateway_of_names, shows=client_files("mallory")):
            pass
    await until_logged(gateway_of_names, "user=ann")


async def test_amqp_clients_are_who_their_certificate_says(gateway_of_names):
    host, port = gateway_of_names.address("amqps")

    def connect(name):
        options = pika.SSLOptions(client_context(shows=client_files(name)), host)
        credentials = pika.credentials.ExternalCredentials()
        parameters = pika.ConnectionParameters(host, port, ssl_options=options, credentials=credentials)
        with pika.BlockingConnection(parameters) as connection:
            connection.channel().queue_declare("named")

    await asyncio.to_thread(connect, "ann")
    with pytest.raises(pika.exceptions.AMQPConnectionError):
        await asyncio.to_thread(connect, "mallory")
    await until_logged(gateway_of_names, "the name in the certificate is none of the users")


async def test_rocketmq_clients_come_in_by_their_certificate(gateway_of_names):
    namesrv = "{}:{}".format(*gateway_of_names.address("broker-tls"))
    async with Producer(namesrv, tls=client_context(shows=client_files("ann"))) as producer:
        assert (await producer.send("Named", b"x", queue_id=0)).queue_offset == 0
    async with Producer(namesrv, tls=client_context(shows=client_files("mallory")), timeout_s=1) as producer:
        with pytest.raises(SdkError):
            await producer.send("Named", b"x", queue_id=0)


@pytest.mark.parametrize("name", ["mqtts", "amqps"])
async def test_plain_bytes_at_a_port_for_tls_are_refused(gateway, name):
    reader, writer = await asyncio.open_connection(*gateway.address(name))
    writer.write(b"AMQP\x00\x00\x09\x01" if name == "amqps" else b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x00\x00\x00")
    with contextlib.suppress(ConnectionResetError):
        answer = await asyncio.wait_for(reader.read(), WAIT_S)
        assert answer[:1] in {b"", b"\x15"}  # an alert at most
    writer.close()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the command openssl")
async def test_renegotiation_is_refused(gateway):
    command = ["openssl", "s_client", "-connect", "{}:{}".format(*gateway.address("mqtts")), "-tls1_2"]
    pipe = asyncio.subprocess.PIPE
    client = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.STDOUT)
    said = b""
    async with asyncio.timeout(WAIT_S):
        while b"Verify return code" not in said:
            said += await client.stdout.readline()
        client.stdin.write(b"R\n")
        said += await client.stdout.read()
        await client.wait()
    assert b"RENEGOTIATING" in said
    assert b"no renegotiation" in said


def is_left_alone(sock):
    """Return whether the other end has neither said nothing more comes nor broken off."""
    sock.setblocking(False)
    try:
        sock.recv(4096)
    except BlockingIOError:
        return True
    except ConnectionResetError:
        pass
    return False


async def test_many_who_stop_in_the_middle_of_a_handshake_hold_nobody_up(gateway):
    hello = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        client_context().wrap_bio(ssl.MemoryBIO(), hello, server_hostname="localhost").do_handshake()
    first = hello.read()
    stuck = []
    for number in range(200):
        sock = socket.create_connection(gateway.address("mqtts"))
        sock.sendall(first[: number % len(first)])
        stuck.append(sock)
    async with mqtt_client(gateway) as client:
        await round_trip(client, "meanwhile", 5)
    assert any(map(is_left_alone, stuck))  # so the other client did not have to wait for their end
    for sock in stuck:  # each is ended by the gateway, in its time
        sock.settimeout(30)
        with contextlib.suppress(ConnectionResetError):
            while await asyncio.to_thread(sock.recv, 4096):
                pass
        sock.close()


# Certificates that change


def served_certificate(gateway):
    host, port = gateway.address("mqtts")
    with socket.create_connection((host, port)) as sock, client_context().wrap_socket(sock, server_hostname=host) as s:
        return s.getpeercert(binary_form=True)


async def until_logged(gateway, text):
    async with asyncio.timeout(WAIT_S):
        while not any(text in line for line in gateway.errors):
            await asyncio.sleep(0.01)


async def test_a_new_certificate_counts_after_a_sighup_and_a_bad_one_does_not(tmp_path):
    files = issue(tmp_path / "server")
    with secure_gateway(tmp_path / "data", files=files) as gateway:
        async with mqtt_client(gateway) as client:
            first = served_certificate(gateway)
            files[1].write_text("no key")
            gateway.process.send_signal(signal.SIGHUP)
            await until_logged(gateway, "settings cannot be read again, nothing changes: tls of ")
            assert served_certificate(gateway) == first
            issue(tmp_path / "server")
            gateway.process.send_signal(signal.SIGHUP)
            await until_logged(gateway, "settings were read again")
            assert served_certificate(gateway) != first
            await round_trip(client, "old/connection", 5)
        assert gateway.stop() == 0


async def test_a_stop_ends_tls_in_order(tmp_path):
    with secure_gateway(tmp_path) as gateway:
        plain = socket.create_connection(gateway.address("mqtts"), timeout=WAIT_S)
        context = client_context()
        context.check_hostname = False
        with context.wrap_socket(plain, suppress_ragged_eofs=False) as client:  # an end without a word is an error
            client.sendall(b"\x10\x0f\x00\x04MQTT\x04\x02\x00\x00\x00\x03abc")
            assert client.recv(4) == b"\x20\x02\x00\x00"
            stopping = asyncio.create_task(asyncio.to_thread(gateway.stop))
            assert await asyncio.to_thread(client.recv, 1) == b""
        assert await stopping == 0
    assert any("stopped, all is on disk" in line for line in gateway.errors)
