"""What MQTT 5 adds to a connection, as clients in use find it: aliases, authentication, response information."""

from __future__ import annotations

import queue
import shutil
import socket
import subprocess

import paho.mqtt.client as paho
import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from gateway.auth.users import hash_for_scram
from tests.support import mqtt
from tests.support.gateway import GatewayProcess
from tests.support.mqtt_5 import P, connack_of, encoded
from tests.support.scram import ScramClient

pytestmark = pytest.mark.slow

WAIT_S = 15


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mqtt5")
    config = folder / "lmq.toml"
    user = f'[auth.users.alice]\npassword_hash = "{hash_for_scram("secret", 4_096)}"\n'
    config.write_text(f'[mqtt]\nresponse_prefix = "answers"\n{user}')
    with GatewayProcess(folder / "data", "--config", str(config)) as running:
        yield running
        assert not any("Traceback" in line for line in running.errors), "".join(running.errors)


def test_paho_goes_by_the_aliases_it_is_given(gateway):
    got, ready = queue.Queue(), queue.Queue()
    client = paho.Client(paho.CallbackAPIVersion.VERSION2, "aliases", protocol=paho.MQTTv5)
    client.on_message = lambda _client, _userdata, message: got.put(message)
    client.on_subscribe = lambda *_: ready.put(None)
    properties = Properties(PacketTypes.CONNECT)
    properties.TopicAliasMaximum = 4
    client.connect(*gateway.address("mqtt"), properties=properties)
    client.loop_start()
    client.subscribe("plant/+/temperature", 1)
    ready.get(timeout=WAIT_S)
    for i in range(6):
        client.publish(f"plant/{i % 2}/temperature", b"%d" % i, 1).wait_for_publish(WAIT_S)
    known = {}
    for i in range(6):
        message = got.get(timeout=WAIT_S)
        alias = getattr(message.properties, "TopicAlias", 0)
        topic = known.setdefault(alias, message.topic) if alias else message.topic
        assert (topic, message.payload) == (f"plant/{i % 2}/temperature", b"%d" % i)
    assert len(known) == 2
    client.disconnect()
    client.loop_stop()


def open_paho(gateway, client_id, got, **properties):
    """Return a client of paho that is connected, and what it was told then."""
    told = queue.Queue()
    client = paho.Client(paho.CallbackAPIVersion.VERSION2, client_id, protocol=paho.MQTTv5)
    client.on_message = lambda _client, _userdata, message: got.put((client_id, message))
    client.on_connect = lambda *arguments: told.put(arguments[4])
    client.on_subscribe = lambda *arguments: told.put(arguments[3])
    wanted = Properties(PacketTypes.CONNECT)
    for name, value in properties.items():
        setattr(wanted, name, value)
    client.connect(*gateway.address("mqtt"), properties=wanted)
    client.loop_start()
    return client, told.get(timeout=WAIT_S), told


def test_paho_is_told_where_it_may_be_answered(gateway):
    client, told, _ = open_paho(gateway, "asks/1", queue.Queue(), RequestResponseInformation=1)
    assert told.ResponseInformation == "answers/asks%2F1"
    client.disconnect()
    client.loop_stop()


def test_paho_clients_share_messages_at_qos_2(gateway):
    got = queue.Queue()
    clients = []
    for name in ("one", "two"):
        client, _, told = open_paho(gateway, name, got)
        client.subscribe("$share/group/work/#", 2)
        assert [code.value for code in told.get(timeout=WAIT_S)] == [2]
        clients.append(client)
    for i in range(20):
        clients[0].publish("work/t", b"%d" % i, 2).wait_for_publish(WAIT_S)
    taken = [got.get(timeout=WAIT_S) for _ in range(20)]
    assert sorted(int(message.payload) for _, message in taken) == list(range(20))
    assert {message.qos for _, message in taken} == {2}
    assert {name for name, _ in taken} == {"one", "two"}
    assert got.empty()
    for client in clients:
        client.disconnect()
        client.loop_stop()


def receive(sock):
    """Return one packet."""
    head = sock.recv(2, socket.MSG_WAITALL)
    assert head[1] < 0x80
    return head + sock.recv(head[1], socket.MSG_WAITALL)


def prove(gateway, client):
    """Go through SCRAM-SHA-256 by AUTH packets on a socket; return the answer to the proof."""
    method = (P.AUTH_METHOD, b"SCRAM-SHA-256")
    with socket.create_connection(gateway.address("mqtt"), timeout=WAIT_S) as sock:
        sock.sendall(mqtt.connect_5(b"scram", properties=encoded(method, (P.AUTH_DATA, client.first))))
        asked = receive(sock)
        assert asked[0] == 0xF0
        data = asked[asked.index(b"r=") :]
        proof = (P.AUTH_DATA, client.final(data))
        sock.sendall(mqtt.packet(0xF0, b"\x18" + encoded(method, proof)))
        return connack_of(receive(sock)), data


def test_scram_over_a_socket_and_after_a_restart(gateway):
    client = ScramClient()
    (_, code, found), _ = prove(gateway, client)
    assert code == 0
    assert client.is_server(found.texts[P.AUTH_DATA])
    (_, code, _), before = prove(gateway, ScramClient("nobody"))
    assert code == 0x87
    gateway.kill()
    gateway.start()
    _, after = prove(gateway, ScramClient("nobody"))
    assert before.split(b",")[1:] == after.split(b",")[1:]  # the salt of no user is always the same


@pytest.mark.skipif(shutil.which("mosquitto_pub") is None, reason="mosquitto's tools are not installed")
def test_plain_login_of_a_user_with_keys_for_scram(gateway):
    mosquitto = ["mosquitto_pub", "-h", "127.0.0.1", "-p", str(gateway.port("mqtt")), "-V", "5", "-u", "alice"]
    for password, code in (("secret", 0), ("wrong", 134)):
        done = subprocess.run([*mosquitto, "-P", password, "-t", "t", "-n"], check=False, timeout=WAIT_S)
        assert done.returncode == code
