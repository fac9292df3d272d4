"""A session and a queue that were left behind, a log far over its size, and a gateway that is killed with -9."""

from __future__ import annotations

import threading
import time

from tests.fault.test_kill_mqtt import parse
from tests.support import mqtt
from tests.support.gateway import GatewayProcess
from tests.support.mqtt_client import MqttClient
from tests.support.pika_client import OF_KILLED_PEERS, PERSISTENT, connect
from tests.support.store import read_folder

pytestmark = OF_KILLED_PEERS

MIB = 1 << 20
SEGMENTS = 8
WAIT_S = 90  # retention looks every 10 s, and goes by stages
RARE = [b"rare-%d" % number for number in range(SEGMENTS)]
JOBS = [b"job-%d" % number for number in range(SEGMENTS)]


def disk_bytes(data_dir):
    return sum(path.stat().st_blocks * 512 for path in (data_dir / "commitlog").iterdir())


def leave_much_behind(gateway):
    """Let a session and a queue go away, and fill several segments with what is for neither, and a little that is."""
    with MqttClient(gateway.address("mqtt"), b"idle") as idle:
        idle.send(mqtt.subscribe(1, (b"alarm/+", 1)))
        assert mqtt.suback(1, 1) in idle.read()
    connection = connect(gateway, blocked_s=None)
    channel = connection.channel()
    channel.confirm_delivery()
    channel.queue_declare("jobs", durable=True)
    with MqttClient(gateway.address("mqtt"), b"busy") as busy:
        for rare, job in zip(RARE, JOBS, strict=True):
            busy.send(*[mqtt.publish(b"plant/%d" % k, bytes(100_000)) for k in range(SEGMENTS * 5)])
            busy.send(mqtt.publish(b"alarm/1", rare, qos=1, packet_id=1))
            assert mqtt.puback(1) in busy.read()
            channel.basic_publish("", "jobs", job, PERSISTENT)
    connection.close()


def wait_for_room(gateway, bytes_max):
    until = time.monotonic() + WAIT_S
    while disk_bytes(gateway.data_dir) > bytes_max and time.monotonic() < until:
        threading.Event().wait(0.5)
    assert disk_bytes(gateway.data_dir) <= bytes_max


def take_all(gateway):
    """Return what the session and the queue get; nothing is acknowledged."""
    with MqttClient(gateway.address("mqtt"), b"idle") as idle:
        assert idle.session_present
        packets = []
        while more := idle.read(wait_s=1):
            packets += more
    connection = connect(gateway, blocked_s=None)
    jobs = take_jobs(connection.channel())
    connection.close()
    return [delivery.body for delivery in parse(packets)], jobs


def take_jobs(channel):
    jobs = []
    for method, _, body in channel.consume("jobs", inactivity_timeout=1):
        if method is not None:
            jobs.append(body)
        elif not channel.queue_declare("jobs", passive=True).method.message_count:
            return jobs
    return jobs


def test_room_falls_to_what_a_session_and_a_queue_need_and_they_get_it_after_kills(tmp_path):
    data_dir = tmp_path / "data"
    env = {"LMQ_STORE__RETENTION__BYTES_MAX": str(MIB)}
    with GatewayProcess(data_dir, env=env) as gateway:
        leave_much_behind(gateway)
        full = disk_bytes(data_dir)
        assert full > (SEGMENTS - 1) * 4 * MIB
        wait_for_room(gateway, 5 * MIB)  # the newest segment is whole
        bodies, damaged = read_folder(data_dir)
        assert damaged == []
        assert [body for body in bodies if body in RARE] == RARE
        gateway.restart()
        assert take_all(gateway) == (RARE, JOBS)
        gateway.kill()
        for path in (data_dir / "index").iterdir():
            path.unlink()
        gateway.start()
        assert take_all(gateway) == (RARE, JOBS)
        assert read_folder(data_dir)[1] == []
        assert disk_bytes(data_dir) <= 5 * MIB
        assert not [line for line in gateway.errors if "damaged" in line and "damaged=0" not in line]
