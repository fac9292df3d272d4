from __future__ import annotations

import contextlib
import signal
import socket
import time
import uuid

import pytest

from gateway.process.service_manager import ServiceManager
from tests.support.gateway import GatewayProcess


@contextlib.contextmanager
def listening(name):
    """Listen as systemd does; yield a function that returns the variables of the next datagram, in order."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.settimeout(20)
        manager.bind(name)
        yield lambda: dict(line.split("=") for line in manager.recv(4096).decode().split("\n"))


def test_each_state_is_one_datagram(tmp_path):
    path = str(tmp_path / "notify")
    manager = ServiceManager({"NOTIFY_SOCKET": path})
    before = time.monotonic_ns()
    with listening(path) as told:
        manager.tell_ready()
        manager.tell_reloading()
        manager.tell_stopping()
        assert told() == {"READY": "1"}
        reloading = told()
        assert set(reloading) == {"RELOADING", "MONOTONIC_USEC"}
        assert before <= int(reloading["MONOTONIC_USEC"]) * 1000 + 999 <= time.monotonic_ns() + 999
        assert told() == {"STOPPING": "1"}


def test_abstract_socket_is_told_too():
    name = f"lmq-{uuid.uuid4()}"
    with listening(f"\0{name}") as told:
        ServiceManager({"NOTIFY_SOCKET": f"@{name}"}).tell_ready()
        assert told() == {"READY": "1"}


def test_without_a_manager_nothing_is_said(caplog):
    ServiceManager({}).tell_ready()
    assert caplog.records == []


def test_manager_that_is_away_is_a_line_of_the_log(tmp_path, caplog):
    ServiceManager({"NOTIFY_SOCKET": str(tmp_path / "nothing")}).tell_ready()
    (record,) = caplog.records
    assert "cannot tell the service manager READY=1" in record.getMessage()


def test_manager_that_does_not_read_holds_nothing_up(tmp_path, caplog):
    path = str(tmp_path / "notify")
    manager = ServiceManager({"NOTIFY_SOCKET": path})
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as deaf:
        deaf.bind(path)
        while not caplog.records:  # its queue is full after some hundred at most
            manager.tell_ready()
    assert "cannot tell the service manager" in caplog.text


@pytest.mark.slow
def test_gateway_is_ready_reloads_and_stops_as_its_manager_is_told(tmp_path):
    path, config = tmp_path / "notify", tmp_path / "lmq.toml"
    config.write_text("")
    with (
        listening(str(path)) as told,
        GatewayProcess(tmp_path / "data", "--config", str(config), env={"NOTIFY_SOCKET": str(path)}) as gateway,
    ):
        assert told() == {"READY": "1"}
        for text in ("[mqtt]\nconnections_max = 5\n", "[mqtt]\nlissten = 'off'\n"):  # the second is refused
            config.write_text(text)
            gateway.process.send_signal(signal.SIGHUP)
            assert "RELOADING" in told()
            assert told() == {"READY": "1"}
        assert gateway.stop() == 0
        assert told() == {"STOPPING": "1"}
