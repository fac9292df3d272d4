"""Definitions that a gateway changed and could not commit before it is killed with -9."""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager

import pytest

from tests.support import mqtt
from tests.support.gateway import GatewayProcess
from tests.support.mqtt_client import MqttClient

pytestmark = pytest.mark.slow

SHARED = b"$share/g/t"


@contextmanager
def uncommitted(gateway):
    """Let nothing that is defined meanwhile be committed, and kill the gateway at the end."""
    with closing(sqlite3.connect(gateway.data_dir / "definitions.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")  # a gateway that waits for a lock does so for a second
        yield
        gateway.kill()


def ping(client):
    """Return what comes up to the answer to a ping: what was sent before was done then."""
    client.send(mqtt.PINGREQ)
    packets = []
    while mqtt.PINGRESP not in packets:
        packets += client.read()
    return packets


@pytest.mark.parametrize("clean", [False, True])
def test_backlog_of_a_group_is_there_where_its_end_and_the_next_begin_were_not_answered(tmp_path, clean):
    with GatewayProcess(tmp_path / "data") as gateway:
        address = gateway.address("mqtt")
        with MqttClient(address, b"first") as first:
            first.send(mqtt.subscribe(1, (SHARED, 1)))
            assert first.read() == [mqtt.suback(1, 1)]
            with MqttClient(address, b"sender", clean=True) as sender:
                sender.send(*[mqtt.publish(b"t", b"%d" % i, qos=1, packet_id=i) for i in range(1, 4)])
                acks = []
                while len(acks) < 3:
                    acks += sender.read()
            got = [mqtt.parse_publish(each) for each in first.read(3)]
            first.send(mqtt.puback(got[0].packet_id))
            ping(first)
            with MqttClient(address, b"second", clean=clean) as second:
                with uncommitted(gateway):
                    first.send(mqtt.unsubscribe(2, SHARED))
                    assert ping(first) == [mqtt.PINGRESP]
                    second.send(mqtt.subscribe(1, (SHARED, 1)))
                    assert ping(first) == [mqtt.PINGRESP]
                assert second.read() == []
        gateway.start()
        with MqttClient(gateway.address("mqtt"), b"first") as first:
            left = [mqtt.parse_publish(first.read(1)[0]).body for _ in range(2)]
    assert left == [b"2", b"3"]
