from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys

import paho.mqtt.publish
import pytest

from gateway.auth.users import check_password
from gateway.settings_doc import settings_page
from gateway.version import VERSION
from tests.support.gateway import GatewayProcess
from tests.support.sources import ROOT

PORTS = [part for door in ("mqtt", "amqp", "namesrv", "broker", "admin") for part in (f"--{door}", "127.0.0.1:0")]


def _lmq(*arguments, env=None, **options):
    return subprocess.run(
        [sys.executable, "-m", "gateway", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=110,
        env=env,
        check=False,
        **options,
    )


def _publish(gateway, topic, body):
    host, port = gateway.address("mqtt")
    paho.mqtt.publish.single(topic, body, qos=1, hostname=host, port=port)


def _check_refused(result, text):
    assert result.returncode == 2, result.stderr
    (line,) = [line for line in result.stderr.splitlines() if " info " not in line]
    assert line.startswith("lmq: ")
    assert re.search(text, line), line
    assert "Traceback" not in result.stderr
    assert "ready" not in result.stdout


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with GatewayProcess(tmp_path_factory.mktemp("data")) as gateway:
        yield gateway


@pytest.mark.slow
def test_running_gateway_prints_its_addresses(running):
    assert set(running.listening) == {"mqtt", "amqp", "namesrv", "broker", "admin"}
    for address in running.listening.values():
        socket.create_connection(address, timeout=5).close()


@pytest.mark.slow
def test_folder_in_use_is_said_in_one_line(running):
    _check_refused(_lmq("serve", "--data-dir", str(running.data_dir), *PORTS), "is in use")


@pytest.mark.slow
@pytest.mark.parametrize("door", ["mqtt", "admin"])
def test_port_in_use_is_said_in_one_line(running, tmp_path, door):
    taken = f"127.0.0.1:{running.port(door)}"
    result = _lmq("serve", "--data-dir", str(tmp_path), *PORTS, f"--{door}", taken)
    _check_refused(result, f"cannot listen for {door} on {taken}: the address is in use")


@pytest.mark.slow
def test_folder_that_cannot_be_used_is_said_in_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    _check_refused(_lmq("serve", "--data-dir", str(tmp_path / "file"), *PORTS), "cannot use data folder")


@pytest.mark.slow
def test_wrong_settings_are_said_in_one_line(tmp_path):
    config = tmp_path / "lmq.toml"
    config.write_text("[mqtt]\nlissten = 'off'\n")
    _check_refused(
        _lmq("serve", "--config", str(config)), r"unknown setting mqtt\.lissten .*; did you mean mqtt\.listen\?"
    )
    _check_refused(_lmq("serve", "--flush", "sometimes"), r"wrong setting store\.flush\.mode in the command line")
    _check_refused(_lmq("config", "check", "--config", str(config)), r"did you mean mqtt\.listen\?")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_stops_it_cleanly(tmp_path, number):
    with GatewayProcess(tmp_path) as gateway, socket.create_connection(gateway.address("mqtt")):
        gateway.process.send_signal(number)
        assert gateway.process.wait(5) == 0
        gateway.process.stdout.close()


@pytest.mark.slow
def test_killed_gateway_starts_again_over_its_folder(tmp_path):
    with GatewayProcess(tmp_path) as gateway:
        gateway.restart()
        assert gateway.stop() == 0


@pytest.mark.slow
def test_explain_asks_the_running_gateway(running):
    admin = f"http://127.0.0.1:{running.port('admin')}"
    result = _lmq("explain", "topic", "a/b/c", "--admin", admin)
    assert result.stdout.startswith("a/b/c is stored once on LMQ_PARENT and reaches 0 light queues")
    found = json.loads(_lmq("explain", "topic", "a/b/c", "--admin", admin, "--json").stdout)
    assert found == {"topic": "a/b/c", "parent_topic": "LMQ_PARENT", "queues": []}


@pytest.mark.slow
def test_explain_without_a_gateway_says_so():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        admin = f"http://127.0.0.1:{free.getsockname()[1]}"
        _check_refused(_lmq("explain", "topic", "a", "--admin", admin), "cannot ask the gateway")
    _check_refused(_lmq("explain", "topic", "a", "--admin", "ftp://nowhere"), "not an http address")


@pytest.mark.slow
def test_config_is_shown_as_it_would_be_used(tmp_path):
    config = tmp_path / "lmq.toml"
    config.write_text("[amqp]\nlisten = 'off'\n")
    shown = json.loads(_lmq("config", "show", "--config", str(config)).stdout)
    assert shown["amqp"]["listen"] == "off"
    assert shown["store"]["flush"]["mode"] == "sync"
    assert _lmq("config", "check").stdout == "settings are fine\n"


@pytest.mark.slow
def test_small_commands():
    assert _lmq("--version").stdout == f"lmq-gateway {VERSION}\n"
    assert _lmq("config", "doc").stdout == settings_page()
    assert check_password(b"secret", _lmq("hash-password", "--password", "secret").stdout.strip())


@pytest.mark.slow
def test_report_without_spark_names_the_line_that_adds_it(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as u\n_find = u.find_spec\n"
        "u.find_spec = lambda name, package=None: None if name == 'pyspark' else _find(name, package)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    result = _lmq("report", "fan-out", "--data-dir", str(tmp_path), "--out", str(tmp_path / "out"), env=env)
    _check_refused(result, r"pip install 'lmq-gateway\[spark\]'")


@pytest.mark.slow
@pytest.mark.spark
def test_report_is_made_beside_the_running_gateway(running, tmp_path):
    _publish(running, "plant/1/temp", "21.5")
    result = _lmq("report", "fan-out", "--data-dir", str(running.data_dir), "--out", str(tmp_path / "report"))
    assert result.returncode == 0, result.stderr
    assert "<html" in (tmp_path / "report" / "index.html").read_text()
