from __future__ import annotations

import os
import pty
import signal
import socket
import sys
import threading
import time
from pathlib import Path

import pytest

from gateway import serving
from gateway.address import format_address
from gateway.net.listener import ListenError
from gateway.serving import USE_ERRORS, run_gateway
from tests.support import mqtt
from tests.support.gateway import GatewayProcess
from tests.support.mqtt_client import MqttClient

pytestmark = pytest.mark.slow
WAIT_S = 20
NEVER = threading.Event()
TAKE_TERMINAL = """import os, sys
os.setsid()
os.close(os.open(sys.argv[1], os.O_RDWR))  # the first one that is opened is the session's own
os.execv(sys.argv[2], sys.argv[2:])
"""


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "lmq.toml"
    path.write_text("")
    return path


def _wait(gateway, text, count=1):
    """Wait until a text stands in `count` lines of the log; return the last of them."""
    until = time.monotonic() + WAIT_S
    while time.monotonic() < until:
        lines = [line for line in gateway.errors if text in line]
        if len(lines) >= count:
            return lines[count - 1]
        NEVER.wait(0.02)
    raise AssertionError(f"{text!r} is not said: {gateway.errors}")


def _hang_up(gateway):
    gateway.process.send_signal(signal.SIGHUP)


def _publishes(client):
    client.send(mqtt.publish(b"t", b"x", qos=1, packet_id=1))
    return client.read(1) == [b"\x40\x02\x00\x01"]


def _is_refused(address):
    with socket.create_connection(address, timeout=WAIT_S) as sock:
        try:
            return sock.recv(1) == b""
        except ConnectionError:
            return True


def test_where_it_listens_can_be_said_to_nobody(monkeypatch, caplog):
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stdout", full)
        serving._tell(["listening mqtt 127.0.0.1:1", "ready"])
        monkeypatch.undo()
        full.flush()  # as Python does at its end
    (record,) = caplog.records
    assert record.getMessage() == "cannot print the listening addresses on the standard output: No space left on device"


@pytest.mark.usefixtures("kept_logs")
def test_address_that_is_taken_is_an_error_that_the_operator_can_put_right(monkeypatch, tmp_path):
    for name in ("forbid_core_dumps", "raise_limit"):  # this process is the tests', and has others to run
        monkeypatch.setattr(serving, name, lambda: None)
    doors = {"amqp": {"listen": "off"}, "rocketmq": {"namesrv": "off", "broker": "off"}, "admin": {"listen": "off"}}
    with GatewayProcess(tmp_path / "first") as first:
        taken = {"mqtt": {"listen": format_address(*first.address("mqtt"))}}
        before = signal.getsignal(signal.SIGHUP)
        try:
            with pytest.raises(ListenError) as caught:
                run_gateway(None, {"data_dir": str(tmp_path / "second"), **doors, **taken})
        finally:
            signal.signal(signal.SIGHUP, before)
    assert isinstance(caught.value, USE_ERRORS)


def test_hang_up_reads_the_settings_again_from_the_same_sources(tmp_path, config):
    env = {"LMQ_MQTT__HOST_CONNECTIONS_MAX": "5"}
    with GatewayProcess(tmp_path / "data", "--config", str(config), "--log-level", "info", env=env) as gateway:
        with MqttClient(gateway.address("mqtt"), b"first") as first:
            config.write_text("[mqtt]\nconnections_max = 1\nhost_connections_max = 6\n[log]\nlevel = 'error'\n")
            _hang_up(gateway)
            assert "name=mqtt.connections_max from=0 to=1" in _wait(gateway, "setting changed")
            _wait(gateway, "settings were read again changes=1")  # environment and flags say the rest, as at the start
            assert _is_refused(gateway.address("mqtt"))
            assert _publishes(first)
            config.write_text("")
            _hang_up(gateway)
            _wait(gateway, "name=mqtt.connections_max from=1 to=0")
            with MqttClient(gateway.address("mqtt"), b"second") as second:
                assert _publishes(second)
        assert gateway.stop() == 0


def test_wrong_settings_are_one_line_and_change_nothing(tmp_path, config):
    with (
        GatewayProcess(tmp_path / "data", "--config", str(config)) as gateway,
        MqttClient(gateway.address("mqtt"), b"c") as client,
    ):
        _wait(gateway, "let in without a login conn=")
        for count, (text, said) in enumerate(
            [
                ("[mqtt]\nconnections_max = 1\nlissten = 'off'\n", "unknown setting mqtt.lissten"),
                ("[mqtt\n", "is not TOML"),
                ("[auth.users.ann]\n[mqtt]\nconnections_max = 1\n", "auth.users.ann needs password_hash"),
            ],
            1,
        ):
            config.write_text(text)
            before = len(gateway.errors)
            _hang_up(gateway)
            line = _wait(gateway, "settings cannot be read again, nothing changes: ", count)
            assert said in line
            assert gateway.errors[before:] == [line]
        assert _publishes(client)
        with MqttClient(gateway.address("mqtt"), b"other") as other:
            assert _publishes(other)


def test_log_that_was_changed_is_written_as_the_settings_say(tmp_path, config):
    with GatewayProcess(tmp_path / "data", "--config", str(config)) as gateway:
        config.write_text("[log]\nformat = 'json'\n")
        _hang_up(gateway)
        _wait(gateway, "name=log.format from=text to=json")
        _hang_up(gateway)
        assert _wait(gateway, "read again", 2).startswith("{")


def test_gateway_outlives_the_terminal_that_it_was_started_in(tmp_path):
    ours, theirs = pty.openpty()
    with GatewayProcess(tmp_path, prefix=(sys.executable, "-c", TAKE_TERMINAL, os.ttyname(theirs))) as gateway:
        os.close(theirs)
        os.close(ours)
        _wait(gateway, "settings were read again")
        with MqttClient(gateway.address("mqtt"), b"c") as client:
            assert _publishes(client)
        assert gateway.stop() == 0


def test_hang_ups_while_it_starts_do_not_end_it(tmp_path):
    gateway = GatewayProcess(tmp_path, prefix=("nohup",))
    is_ready = threading.Event()

    def hang_up():
        while not is_ready.wait(0.02):
            if gateway.process is not None:
                _hang_up(gateway)

    sender = threading.Thread(target=hang_up)
    sender.start()
    try:
        with gateway:
            is_ready.set()
            assert gateway.stop() == 0
    finally:
        is_ready.set()
        sender.join()
