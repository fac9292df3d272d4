"""What clients of MQTT 5 that are processes of their own are told by a gateway whose disk is low on room."""

from __future__ import annotations

import shutil
import subprocess
import threading

import paho.mqtt.client as paho
import pytest

from tests.support.gateway import GatewayProcess

pytestmark = pytest.mark.slow

WAIT_S = 20
MORE_THAN_ANY_DISK = 1 << 50


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    env = {"LMQ_STORE__DISK_FREE_BYTES_MIN": str(MORE_THAN_ANY_DISK)}
    with GatewayProcess(tmp_path_factory.mktemp("low") / "data", env=env) as gateway:
        yield gateway.address("mqtt")


@pytest.mark.skipif(shutil.which("mosquitto_pub") is None, reason="mosquitto's tools are not installed")
@pytest.mark.parametrize("qos", [1, 2])
def test_mosquitto_pub_says_that_its_quota_is_exceeded(address, qos):
    host, port = address
    to = ("-h", host, "-p", str(port), "-V", "5", "-t", "t", "-m", "x", "-q", str(qos), "-d")
    done = subprocess.run(["mosquitto_pub", *to], check=False, timeout=WAIT_S, capture_output=True, text=True)
    assert "Publish 1 failed: Quota exceeded" in done.stderr
    assert f"received {'PUBACK' if qos == 1 else 'PUBREC'} (Mid: 1" in done.stdout
    assert "PUBREL" not in done.stdout


def test_paho_is_told_the_reason_at_each_qos_and_its_pings_are_answered(address):
    host, port = address
    told = {}
    pinged, answered, connected = threading.Event(), threading.Event(), threading.Event()
    client = paho.Client(paho.CallbackAPIVersion.VERSION2, "sender", protocol=paho.MQTTv5)
    client.on_connect = lambda *_: connected.set()

    def on_publish(_client, _data, mid, reason_code, _properties):
        told[mid] = reason_code.value
        if len(told) == 2:
            answered.set()

    client.on_publish = on_publish
    client.on_log = lambda _client, _data, _level, text: pinged.set() if text == "Received PINGRESP" else None
    client.connect(host, int(port), keepalive=1)
    client.loop_start()
    try:
        assert connected.wait(WAIT_S)
        first, second = client.publish("t", b"1", 1), client.publish("t", b"2", 2)
        assert answered.wait(WAIT_S)
        # paho looks over the code of a PUBREC and releases all the same; then it is told that nothing was taken.
        assert told == {first.mid: 0x97, second.mid: 0x92}
        assert pinged.wait(WAIT_S)
        assert client.is_connected()
    finally:
        client.disconnect()
        client.loop_stop()
