from __future__ import annotations

import os
import re
import signal
import socket

import pytest

from tests.support.commands import call_lmq, check_refused, check_told, publish_mqtt, run_lmq
from tests.support.gateway import DOORS, GatewayProcess
from tests.support.store import light, open_store, publish

PORTS = [part for door in DOORS for part in (f"--{door}", "127.0.0.1:0")]


def test_a_log_that_lacks_what_was_on_disk_stops_the_start_with_what_is_missing(tmp_path):
    store = open_store(tmp_path)
    publish(store, store.make_route(b"T", 0, b"", light("q")), *(b"x" * 9_000,) * 20)
    store.close()
    path = max((tmp_path / "commitlog").iterdir())
    confirmed = store.written_until
    path.unlink()
    result = run_lmq("serve", "--data-dir", str(tmp_path), *PORTS)
    assert result.returncode == 2
    lines = [line for line in result.stderr.splitlines() if not re.search("Z (info|warning) ", line)]
    assert lines[0].startswith(f"lmq: cannot use data folder {tmp_path / 'commitlog'}: the log lacks ")
    lost = confirmed - int(path.name)
    assert f"segment {path.name} is missing: positions {int(path.name)} to {confirmed}, {lost} bytes" in lines[1]
    assert "store.accept_loss = true" in lines[-1]
    with GatewayProcess(tmp_path, env={"LMQ_STORE__ACCEPT_LOSS": "true"}) as gateway:
        publish_mqtt(gateway, "t", b"next")
        gateway.stop()
        assert any(f"store.accept_loss: segment {path.name} is missing" in line for line in gateway.errors)
    with GatewayProcess(tmp_path) as gateway:
        assert gateway.stop() == 0


@pytest.mark.slow
def test_running_gateway_prints_its_addresses(running):
    assert set(running.listening) == {*DOORS}
    for address in running.listening.values():
        socket.create_connection(address, timeout=20).close()


@pytest.mark.slow
def test_folder_in_use_is_said_in_one_line(running):
    check_refused(run_lmq("serve", "--data-dir", str(running.data_dir), *PORTS), "is in use")


@pytest.mark.slow
@pytest.mark.parametrize("door", DOORS)
def test_port_in_use_is_said_in_one_line(running, tmp_path, door):
    taken = f"127.0.0.1:{running.port(door)}"
    result = run_lmq("serve", "--data-dir", str(tmp_path), *PORTS, f"--{door}", taken)
    check_refused(result, f"cannot listen for {door} on {taken}: the address is in use")


def _put_file(path):
    path.write_text("")


def _put_database(path):
    path.mkdir()
    (path / "definitions.db").write_text("none")


def _put_gap(path):
    (path / "commitlog").mkdir(parents=True)
    for base in (0, 9_000_000):
        (path / "commitlog" / f"{base:020}").write_bytes(bytes(65_536))


FOLDERS = {
    "a file in its place": (_put_file, "it is a file"),
    "nothing can be made in it": (lambda path: path.symlink_to("/proc"), "No such file"),
    "its lock cannot be opened": (lambda path: (path / "lock").mkdir(parents=True), "Is a directory"),
    "its journal cannot be opened": (lambda path: (path / "journals/pop").mkdir(parents=True), "journals/pop: Is a"),
    "its places cannot be opened": (lambda path: (path / "places/mqtt").mkdir(parents=True), "places/mqtt: Is a"),
    "no database": (_put_database, "definitions.db: damaged database"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FOLDERS)
def test_folder_that_cannot_be_used_is_said_in_one_line(tmp_path, name):
    spoil, text = FOLDERS[name]
    spoil(tmp_path / "data")
    result = run_lmq("serve", "--data-dir", str(tmp_path / "data"), *PORTS)
    check_refused(result, f"cannot use data folder .*({text})")


@pytest.mark.slow
def test_gap_between_segments_is_said_with_its_positions(tmp_path):
    _put_gap(tmp_path / "data")
    result = run_lmq("serve", "--data-dir", str(tmp_path / "data"), *PORTS)
    assert result.returncode == 2, result.stderr
    assert "one is missing" in result.stderr or "is missing: positions 65536 to 9000000" in result.stderr, result.stderr
    assert "Traceback" not in result.stderr
    assert "ready" not in result.stdout


@pytest.mark.slow
@pytest.mark.parametrize("door", ["mqtt", "admin"])
def test_host_that_is_not_there_is_said_in_one_line(tmp_path, door):
    meant = {**os.environ, "LMQ_AUTH__OPEN": "true"}  # else anonymous clients beyond this machine are refused first
    result = run_lmq("serve", "--data-dir", str(tmp_path), *PORTS, f"--{door}", "203.0.113.9:1", env=meant)
    check_refused(result, f"cannot listen for {door} on 203.0.113.9:1: .*cannot assign requested address")


@pytest.mark.slow
def test_user_without_its_password_is_said_in_one_line(tmp_path):
    config = tmp_path / "lmq.toml"
    config.write_text('[auth.users.ann]\npassword_env = "LMQ_TEST_NOT_SET"\n')
    result = run_lmq("serve", "--config", str(config), "--data-dir", str(tmp_path / "data"), *PORTS)
    check_refused(result, r"auth\.users\.ann\.password_env: LMQ_TEST_NOT_SET is not set")


@pytest.mark.slow
def test_wrong_settings_are_said_in_one_line(tmp_path):
    config = tmp_path / "lmq.toml"
    config.write_text("[mqtt]\nlissten = 'off'\n")
    check_refused(
        run_lmq("serve", "--config", str(config)), r"unknown setting mqtt\.lissten .*; did you mean mqtt\.listen\?"
    )
    check_refused(run_lmq("serve", "--flush", "sometimes"), r"wrong setting store\.flush\.mode in the command line")
    check_refused(run_lmq("serve", "--data-dir", ""), r"wrong setting data_dir in the command line: must name a folder")
    broken = {**os.environ, "LMQ_AUTH__USERS": "{bad"}
    check_refused(run_lmq("serve", env=broken), r"wrong setting LMQ_AUTH__USERS in the environment: not JSON")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_stops_it_cleanly(tmp_path, number):
    with GatewayProcess(tmp_path, doors=DOORS) as gateway, socket.create_connection(gateway.address("mqtt")):
        gateway.process.send_signal(number)
        assert gateway.process.wait(5) == 0
        gateway.process.stdout.close()


@pytest.mark.slow
def test_killed_gateway_starts_again_over_its_folder(tmp_path):
    with GatewayProcess(tmp_path, doors=DOORS) as gateway:
        gateway.restart()
        assert gateway.stop() == 0


def test_other_systems_are_refused_in_one_line(monkeypatch):
    monkeypatch.setattr("sys.platform", "darwin")
    check_told(call_lmq("serve"), "^lmq: the gateway runs on Linux; this is darwin$")
