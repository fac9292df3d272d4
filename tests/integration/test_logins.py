"""Logins over real sockets and threads, and what the log says of a connection from its first line to its last."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import shutil
import subprocess
import threading
import time
from pathlib import Path

import aio_pika
import aiomqtt
import aiormq
import pytest

from gateway.auth.users import hash_password
from gateway.settings.models import AuthSettings
from lmq.errors import NoPermissionError
from lmq.producer import Producer
from lmq.pull_consumer import PullConsumer
from tests.support import mqtt
from tests.support.admin import make_client, make_view
from tests.support.gateway import running_gateway
from tests.support.tokens import SECRET as TOKEN_SECRET, make as make_token

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]

WAIT_S = 20
NOT_AUTHORIZED = r"(?i)not authori[sz]ed"
KEPT = hash_password("secret")  # as dear as those of the settings
GUESSERS = 24
SECRET = "what cy signs with"
JARS = os.environ.get("LMQ_TEST_ROCKETMQ_LIB", "")  # the folder with the jars of Apache RocketMQ's client


def auth(**settings):
    users = {
        "alice": {"password_hash": KEPT},
        "bob": {"password_hash": KEPT, "may_publish": False},
        "cy": {"secret": SECRET},
    }
    return AuthSettings.model_validate({"users": users, **settings})


def client(gateway, user, password="secret", **options):
    host, port = gateway.listening["mqtt"]
    return aiomqtt.Client(host, port, username=user, password=password, timeout=WAIT_S, **options)


async def guess(gateway, number):
    """Try one wrong password after the other, from this address, for ever."""
    tried = 0
    while True:
        reader, writer = await asyncio.open_connection(*gateway.listening["mqtt"])
        try:
            password = b"%d-%d" % (number, tried)
            writer.write(mqtt.connect(b"guesser-%d" % number, user=b"alice", password=password))
            await reader.read()
        finally:
            writer.close()
        tried += 1


@contextlib.contextmanager
def held_checks(gateway, monkeypatch):
    """No password that comes is checked to its end before this does."""
    may_go_on, run = threading.Event(), gateway.check_threads.run
    monkeypatch.setattr(gateway.check_threads, "run", lambda work, then: run(lambda: may_go_on.wait() and work(), then))
    try:
        yield
    finally:
        may_go_on.set()


async def test_right_password_gets_in_beside_guessers_from_its_address_and_nobody_else_waits(tmp_path, monkeypatch):
    async with running_gateway(tmp_path, auth=auth()) as gateway:
        async with client(gateway, None, None, identifier="live") as live:
            await live.subscribe("t")
            with held_checks(gateway, monkeypatch):
                guessers = [asyncio.create_task(guess(gateway, number)) for number in range(GUESSERS)]
                while gateway.authenticator._checks._waiting_count < GUESSERS // 2:
                    await asyncio.sleep(0.01)
                for _ in range(20):
                    await live.publish("t", b"x", qos=1)
                    await asyncio.wait_for(anext(live.messages), WAIT_S)
            async with client(gateway, "alice", identifier="mine"):
                pass
            connection = await aio_pika.connect(
                "amqp://bob:secret@{}:{}/".format(*gateway.listening["amqp"]), timeout=WAIT_S
            )
            await connection.close()
        for guesser in guessers:
            guesser.cancel()
        await asyncio.gather(*guessers, return_exceptions=True)


async def test_session_is_not_for_another_user(tmp_path):
    async with running_gateway(tmp_path, auth=auth()) as gateway:
        durable = {"identifier": "device-1", "clean_session": False}
        async with client(gateway, "alice", **durable) as owner:
            await owner.subscribe("t", qos=1)
        async with client(gateway, "alice", identifier="p") as publisher:
            await publisher.publish("t", b"secret", qos=1)
        wrong = r"(?i)bad user ?name or password"  # a name that is no user's, as there are users
        for user, why in (("bob", NOT_AUTHORIZED), ("stranger", wrong), (None, NOT_AUTHORIZED)):
            with pytest.raises(aiomqtt.MqttError, match=why):
                await client(gateway, user, "secret" if user else None, **durable).__aenter__()
        async with client(gateway, "alice", **durable) as owner:
            message = await asyncio.wait_for(anext(owner.messages), WAIT_S)
            assert message.payload == b"secret"


async def test_every_connection_is_logged_from_its_first_to_its_last_under_one_number(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    async with running_gateway(tmp_path, auth=auth(mqtt_anonymous=False)) as gateway:
        async with client(gateway, "bob", identifier="dev") as device:
            for _ in range(3):
                await device.publish("t", b"x", qos=1)
        with pytest.raises(aiomqtt.MqttError):
            await client(gateway, "mallory", identifier="dev").__aenter__()
        host, port = gateway.listening["amqp"]
        connection = await aiormq.connect(f"amqp://alice:secret@{host}:{port}/")
        await connection.close()
        with pytest.raises(aiormq.exceptions.AMQPError):
            await aiormq.connect(f"amqp://alice:wrong@{host}:{port}/")
        async with Producer("{}:{}".format(*gateway.listening["namesrv"]), "makers") as producer:
            await producer.send("T", b"x")
        while len(gateway.connections):
            await asyncio.sleep(0.01)
    said = lives(caplog)
    ends = {
        ("connected mqtt", "logged in bob", "denied publish bob", "denied more bob", "disconnected disconnect"),
        ("connected mqtt", "login refused mallory", "disconnected refused"),
        ("connected amqp", "logged in alice", "disconnected connection.close"),
        ("connected amqp", "login refused alice", "disconnected refused"),
        ("connected rocketmq", "disconnected closed"),
    }
    assert set(said) == ends


def lives(caplog):
    """Return what was said of each connection, in order, without what differs between two runs."""
    found = {}
    for record in caplog.records:
        line = record.getMessage()
        number = re.search(r"conn=(\d+)", line)
        if number:
            words = line.partition(" conn=")[0]
            detail = re.search(
                r"(?:reason=|user=|door=)([\w.]+)", line if "reason=" not in line else line[line.index("reason=") :]
            )
            if "login refused" in words:
                detail = re.search(r"user=(\w+)", line)
            found.setdefault(number[1], []).append(f"{words} {detail[1]}")
    return [tuple(lines) for lines in found.values()]


async def test_sdk_logs_in_by_its_secret_and_strangers_do_not(tmp_path):
    async with running_gateway(tmp_path, auth=auth(rocketmq_anonymous=False)) as gateway:
        namesrv = "{}:{}".format(*gateway.listening["namesrv"])
        keys = {"access_key": "cy", "secret_key": SECRET}
        async with Producer(namesrv, **keys) as producer, PullConsumer(namesrv, **keys) as consumer:
            for number in range(20):
                await producer.send("T", b"%d" % number, queue_id=0)
            found = (await consumer.pull("T", 0, max_count=32, wait_s=WAIT_S)).messages
        assert [message.body for message in found] == [b"%d" % number for number in range(20)]
        for wrong in ({}, {**keys, "secret_key": "another secret"}, {**keys, "access_key": "alice"}):
            async with Producer(namesrv, **wrong) as producer:
                with pytest.raises(NoPermissionError):
                    await producer.send("T", b"x")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # aiormq's, of a refused connection
async def test_no_secret_is_in_the_log_or_in_the_metrics(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    kept = hash_password("right-password")
    token = make_token({"sub": "dan", "exp": int(time.time()) + 600})
    said = ["right-password", "wrong-password", SECRET, "another secret", token.decode(), kept, TOKEN_SECRET]
    users = {"alice": {"password_hash": kept}, "cy": {"secret": SECRET}}
    jwt = {"algorithms": ["HS256"], "secret": TOKEN_SECRET}
    async with running_gateway(tmp_path, auth=auth(rocketmq_anonymous=False, jwt=jwt, users=users)) as gateway:
        amqp = "{}:{}".format(*gateway.listening["amqp"])
        for user, password in (("alice", "right-password"), ("dan", token.decode())):
            async with client(gateway, user, password):
                pass
            connection = await aio_pika.connect(f"amqp://{user}:{password}@{amqp}/", timeout=WAIT_S)
            await connection.close()
        for password in ("wrong-password", token.decode() + "x"):
            with pytest.raises(aiomqtt.MqttError):
                await client(gateway, "alice", password).__aenter__()
            with pytest.raises(aiormq.exceptions.AMQPError):
                await aio_pika.connect(f"amqp://alice:{password}@{amqp}/", timeout=WAIT_S)
        namesrv = "{}:{}".format(*gateway.listening["namesrv"])
        for secret in (SECRET, "another secret"):
            async with Producer(namesrv, access_key="cy", secret_key=secret) as producer:
                with contextlib.suppress(NoPermissionError):
                    await producer.send("T", b"x")
        async with make_client(make_view(gateway), auth=("alice", "right-password")) as asking:
            await asking.get("/api/whoami")
            metrics = (await asking.get("/metrics")).text
    lines = [record.getMessage() for record in caplog.records if record.name.startswith(("gateway", "core", "lmq"))]
    assert len([line for line in lines if "user=alice" in line]) > 2
    assert "lmq_refused_total" in metrics
    for secret in said:
        found = [line for line in lines if secret in line]
        assert not found, secret
        assert secret not in metrics


@pytest.mark.skipif(not JARS or not shutil.which("java"), reason="LMQ_TEST_ROCKETMQ_LIB names no jars, or no Java")
async def test_official_java_client_logs_in_by_its_secret(tmp_path):
    source = Path(__file__).with_name("JavaRoundTrip.java")
    async with running_gateway(tmp_path, auth=auth(rocketmq_anonymous=False)) as gateway:
        namesrv = "{}:{}".format(*gateway.listening["namesrv"])
        command = ["java", f"-Duser.home={tmp_path}", "-cp", f"{JARS}/*", str(source), namesrv, "20"]
        for keys, said in ((["cy", SECRET], "got 20"), (["cy", "another secret"], "No route info")):
            run = await asyncio.to_thread(
                subprocess.run, [*command, *keys], capture_output=True, text=True, timeout=120, check=False
            )
            assert said in run.stdout + run.stderr, run.stdout + run.stderr
