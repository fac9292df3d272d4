from __future__ import annotations

import pytest

from core.metrics import DoorMetrics
from gateway.amqp.connection import AmqpConnection
from gateway.amqp.events import CutterPool
from gateway.amqp.offer import limits_of
from gateway.mqtt.connection import MqttConnection
from gateway.mqtt.events import RunPool as MqttRuns
from gateway.net.protocol import ConnectionHandler, StateMachine, Transport
from gateway.net.transport import SocketTransport
from gateway.rocketmq.connection import Connection as RocketmqConnection, FramePool, Limits
from gateway.rocketmq.send_run import RunPool as RocketmqRuns
from gateway.rocketmq.uniq_key import UniqPrefix
from gateway.settings.models import AmqpSettings
from tests.support.connections import RecordingHandler


def _methods(kind):
    return {name for name, member in vars(kind).items() if callable(member) and not name.startswith("_")}


def test_socket_transport_has_all_that_a_front_may_use():
    assert _methods(Transport) <= _methods(SocketTransport)
    assert "local_address" in vars(SocketTransport)


def test_recording_handler_is_a_whole_handler():
    assert _methods(ConnectionHandler) <= _methods(RecordingHandler)


MACHINES = {
    "mqtt": lambda: MqttConnection(MqttRuns(4), 1_000, 10_000),
    "amqp": lambda: AmqpConnection(limits_of(AmqpSettings(), 1_000), CutterPool(4), 1_000, "1", DoorMetrics("amqp")),
    "rocketmq": lambda: RocketmqConnection(
        FramePool(4), RocketmqRuns(1_000, 1_000), Limits(1_000, 10_000), UniqPrefix(1), b"\x7f\0\0\1\0\0\0\1"
    ),
}


@pytest.mark.parametrize("door", MACHINES)
def test_state_machines_of_all_doors_are_used_alike(door):
    machine = MACHINES[door]()
    assert isinstance(machine, StateMachine)
    machine.handle_timer(1_000)
    assert machine.next_deadline_ms() == 11_000
    machine.receive_data(b"\x10" if door == "mqtt" else b"\0", 2_000)
    machine.receive_eof()
    assert list(machine.events()) == []
    assert isinstance(machine.data_to_send(), bytes)


@pytest.mark.parametrize("door", MACHINES)
def test_events_end_where_the_bytes_do_and_go_on_with_more(door):
    machine = MACHINES[door]()
    first = {"mqtt": b"\x10", "amqp": b"AMQP", "rocketmq": b"\0\0"}[door]
    machine.receive_data(first, 1_000)
    assert next(machine.events(), None) is None
    rest = {
        "mqtt": b"\x0d\0\x04MQTT\x04\x02\0\x3c\0\x01c",
        "amqp": b"\0\0\x09\x01",
        "rocketmq": b'\0\x0f\0\0\0\x0b{"code":34}',
    }[door]
    machine.receive_data(rest, 1_001)
    came = list(machine.events())
    if door == "amqp":
        assert machine.data_to_send()[:7]  # connection.start
    else:
        assert len(came) == 1
