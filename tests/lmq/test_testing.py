"""The broker for tests, used as the tests of another project use it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import aio_pika
import aiomqtt
import pika
import pytest

from lmq.testing import DOORS, Broker, BrokerFailedError, _variables_of
from tests.support.sources import ROOT
from tests.support.waiting import until

pytestmark = pytest.mark.slow


@pytest.mark.asyncio
async def test_messages_survive_a_crash_of_the_broker():
    with Broker() as broker:
        connection = await aio_pika.connect(broker.amqp_url)
        async with connection:
            channel = await connection.channel()
            queue = await channel.declare_queue("orders", durable=True)
            message = aio_pika.Message(b"one", delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
            await channel.default_exchange.publish(message, routing_key=queue.name)
        broker.kill()
        broker.start()
        connection = await aio_pika.connect(broker.amqp_url)
        async with connection:
            channel = await connection.channel()
            queue = await channel.get_queue("orders")
            found = await queue.get(timeout=20)
            assert found.body == b"one"
            await found.ack()


@pytest.mark.asyncio
async def test_every_door_has_an_address():
    with Broker() as broker:
        async with aiomqtt.Client(broker.mqtt_host, broker.mqtt_port) as client:
            await client.subscribe("a/#")
            await client.publish("a/b", b"here", qos=1)
            message = await anext(client.messages)
            assert message.payload == b"here"
        assert broker.mqtt_url == f"mqtt://127.0.0.1:{broker.mqtt_port}"
        assert broker.name_server == "{}:{}".format(*broker.address("namesrv"))
        assert broker.admin_url == "http://{}:{}".format(*broker.address("admin"))


def test_brokers_side_by_side_have_ports_and_folders_of_their_own():
    with Broker() as first, Broker() as second:
        addresses = [{broker.address(door) for door in DOORS} for broker in (first, second)]
        assert [len(each) for each in addresses] == [len(DOORS), len(DOORS)]
        assert not addresses[0] & addresses[1]
        assert first.data_dir != second.data_dir
        before = first.address("amqp")
        second.kill()
        second.start()
        assert first.address("amqp") == before
        socket.create_connection(before).close()


def test_folder_of_its_own_goes_and_one_that_is_given_stays(tmp_path):
    with Broker() as broker:
        own = broker.data_dir
        assert (own / "commitlog").is_dir()
    assert not own.exists()
    with Broker(tmp_path / "data") as broker:
        assert broker.data_dir == tmp_path / "data"
    assert (tmp_path / "data" / "commitlog").is_dir()


def test_gateway_that_cannot_start_says_why():
    with pytest.raises(BrokerFailedError, match=r"mqtt\.listne"), Broker(settings={"mqtt.listne": "off"}):
        pass


def test_gateway_that_is_not_ready_in_time_says_so():
    broker = Broker(ready_timeout_s=0)
    with pytest.raises(BrokerFailedError, match="the gateway was not ready within 0 s"), broker:
        pass
    with pytest.raises(KeyError):
        broker.address("mqtt")


def test_settings_are_pythons_or_text_and_none_of_this_process(monkeypatch):
    monkeypatch.setenv("LMQ_MQTT__LISTEN", "off")
    settings = {"auth.mqtt_anonymous": False, "store.retention.delete_hours": [4, 16], "admin.listen": "127.0.0.1:0"}
    with Broker(settings=settings) as broker:
        assert "setting=auth.mqtt_anonymous" not in broker.log
        address = broker.address("mqtt")
        assert address[1] > 0
        with pytest.raises(BrokerFailedError, match="runs already"):
            broker.start()
        assert broker.address("mqtt") == address


def test_plugin_works_in_a_project_with_packages_called_core_and_gateway(tmp_path):
    for package in ("core", "gateway"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("raise RuntimeError('of another project')")
    (tmp_path / "test_orders.py").write_text(
        "import socket\n"
        "from urllib.parse import urlsplit\n\n"
        "def test_broker_is_there(lmq_broker, lmq_url):\n"
        "    with socket.create_connection((urlsplit(lmq_url).hostname, urlsplit(lmq_url).port)) as client:\n"
        "        client.sendall(b'AMQP\\x00\\x00\\x09\\x01')\n"
        "        assert client.recv(1) == b'\\x01'\n"
        "    assert lmq_broker.mqtt_port\n"
        "    lmq_broker.seen_before = True\n\n"
        "def test_all_tests_share_it(lmq_broker, lmq_url):\n"
        "    assert lmq_broker.seen_before and lmq_url == lmq_broker.amqp_url\n"
    )
    # pytest finds the plugin by the entry point. Our own sources are found, but after the project's.
    arguments = ["-q", "-p", "no:cacheprovider"]
    code = f"import sys; sys.path.append({str(ROOT)!r}); import pytest; sys.exit(pytest.main({arguments!r}))"
    env = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYTEST_ADDOPTS"}}
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "2 passed" in run.stdout


def test_users_keep_the_capitals_of_their_names():
    settings = {
        "auth.users.Alice.tags": ["management"],
        "auth.users.Alice.password_env": "ALICE",
        "auth.users": {"Bob": {"tags": []}},
        "auth.users.carol.tags": [],
    }
    told = _variables_of(settings)
    users = {"Alice": {"tags": ["management"], "password_env": "ALICE"}, "Bob": {"tags": []}}
    assert json.loads(told.pop("LMQ_AUTH__USERS")) == users
    assert told == {"LMQ_AUTH__USERS__CAROL__TAGS": "[]"}


def test_a_user_with_capitals_logs_in_by_that_name(monkeypatch):
    monkeypatch.setenv("SHOP_PASSWORD", "wonder")
    settings = {"auth.users.Alice.password_env": "SHOP_PASSWORD", "auth.users.bob.password_env": "SHOP_PASSWORD"}
    with Broker(settings=settings) as broker:
        host, port = broker.address("amqp")
        for name in ("Alice", "bob"):
            login = pika.PlainCredentials(name, "wonder")
            pika.BlockingConnection(pika.ConnectionParameters(host, port, credentials=login)).close()


@pytest.mark.asyncio
@pytest.mark.parametrize("is_kept", [False, True])
@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM])
async def test_the_gateway_ends_with_tests_that_are_killed(tmp_path, by, is_kept):
    folder, port = begin_and_kill(str(tmp_path / "data") if is_kept else "", by)
    await until(lambda: not is_listening(port))
    if is_kept:
        assert (folder / "commitlog").exists()
    else:
        await until(lambda: not folder.exists())


def begin_and_kill(data_dir, by):
    """Kill a process that has a broker; return the folder and the MQTT port of that."""
    program = (
        "import sys, time; from lmq.testing import Broker\n"
        "with Broker(sys.argv[1] or None) as broker:\n"
        "    print(broker.data_dir, broker.mqtt_port, flush=True)\n"
        "    time.sleep(600)\n"
    )
    command = [sys.executable, "-c", program, data_dir]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as tests:
        folder, _, port = tests.stdout.readline().strip().rpartition(" ")
        assert is_listening(int(port))
        tests.send_signal(by)
    return Path(folder), int(port)


def is_listening(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
