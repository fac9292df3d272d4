from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import tomllib

import paho.mqtt.publish
import pika
import pytest
from typer.testing import CliRunner

from gateway.auth.users import check_password, hash_password
from gateway.cli import _explained, cli
from gateway.settings import load_settings
from gateway.settings_doc import settings_page
from gateway.version import VERSION
from tests.support.gateway import GatewayProcess
from tests.support.sources import ROOT
from tests.support.store import light, open_store, publish

DOORS = ("mqtt", "amqp", "namesrv", "broker", "admin")
PORTS = [part for door in DOORS for part in (f"--{door}", "127.0.0.1:0")]


def _python(*arguments, env=None, **options):
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        env=env,
        check=False,
        **options,
    )


def _lmq(*arguments, **options):
    return _python("-m", "gateway", *arguments, **options)


def _publish(gateway, topic, body):
    host, port = gateway.address("mqtt")
    paho.mqtt.publish.single(topic, body, qos=1, hostname=host, port=port)


def _check_refused(result, text):
    assert result.returncode == 2, result.stderr
    (line,) = [line for line in result.stderr.splitlines() if not re.search("Z (info|warning) ", line)]
    assert line.startswith("lmq: ")
    assert re.search(text, line), line
    assert "Traceback" not in result.stderr
    assert "ready" not in result.stdout


def test_a_log_that_lacks_what_was_on_disk_stops_the_start_with_what_is_missing(tmp_path):
    store = open_store(tmp_path)
    publish(store, store.make_route(b"T", 0, b"", light("q")), *(b"x" * 9_000,) * 20)
    store.close()
    path = max((tmp_path / "commitlog").iterdir())
    confirmed = store.written_until
    path.unlink()
    result = _lmq("serve", "--data-dir", str(tmp_path), *PORTS)
    assert result.returncode == 2
    lines = [line for line in result.stderr.splitlines() if not re.search("Z (info|warning) ", line)]
    assert lines[0].startswith(f"lmq: cannot use data folder {tmp_path / 'commitlog'}: the log lacks ")
    lost = confirmed - int(path.name)
    assert f"segment {path.name} is missing: positions {int(path.name)} to {confirmed}, {lost} bytes" in lines[1]
    assert "store.accept_loss = true" in lines[-1]
    with GatewayProcess(tmp_path, env={"LMQ_STORE__ACCEPT_LOSS": "true"}) as gateway:
        _publish(gateway, "t", b"next")
        gateway.stop()
        assert any(f"store.accept_loss: segment {path.name} is missing" in line for line in gateway.errors)
    with GatewayProcess(tmp_path) as gateway:
        assert gateway.stop() == 0


def _call(*arguments):
    return CliRunner().invoke(cli, arguments)


def _check_told(result, text):
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert re.search(text, line), line


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with GatewayProcess(tmp_path_factory.mktemp("data")) as gateway:
        yield gateway


@pytest.mark.slow
def test_running_gateway_prints_its_addresses(running):
    assert set(running.listening) == {*DOORS}
    for address in running.listening.values():
        socket.create_connection(address, timeout=5).close()


@pytest.mark.slow
def test_folder_in_use_is_said_in_one_line(running):
    _check_refused(_lmq("serve", "--data-dir", str(running.data_dir), *PORTS), "is in use")


@pytest.mark.slow
@pytest.mark.parametrize("door", DOORS)
def test_port_in_use_is_said_in_one_line(running, tmp_path, door):
    taken = f"127.0.0.1:{running.port(door)}"
    result = _lmq("serve", "--data-dir", str(tmp_path), *PORTS, f"--{door}", taken)
    _check_refused(result, f"cannot listen for {door} on {taken}: the address is in use")


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
    "a file in its place": (_put_file, "File exists|Not a directory"),
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
    result = _lmq("serve", "--data-dir", str(tmp_path / "data"), *PORTS)
    _check_refused(result, f"cannot use data folder .*({text})")


@pytest.mark.slow
def test_gap_between_segments_is_said_with_its_positions(tmp_path):
    _put_gap(tmp_path / "data")
    result = _lmq("serve", "--data-dir", str(tmp_path / "data"), *PORTS)
    assert result.returncode == 2, result.stderr
    assert "one is missing" in result.stderr or "is missing: positions 65536 to 9000000" in result.stderr, result.stderr
    assert "Traceback" not in result.stderr
    assert "ready" not in result.stdout


@pytest.mark.slow
@pytest.mark.parametrize("door", ["mqtt", "admin"])
def test_host_that_is_not_there_is_said_in_one_line(tmp_path, door):
    result = _lmq("serve", "--data-dir", str(tmp_path), *PORTS, f"--{door}", "203.0.113.9:1")
    _check_refused(result, f"cannot listen for {door} on 203.0.113.9:1: .*cannot assign requested address")


@pytest.mark.slow
def test_user_without_its_password_is_said_in_one_line(tmp_path):
    config = tmp_path / "lmq.toml"
    config.write_text('[auth.users.ann]\npassword_env = "LMQ_TEST_NOT_SET"\n')
    result = _lmq("serve", "--config", str(config), "--data-dir", str(tmp_path / "data"), *PORTS)
    _check_refused(result, r"auth\.users\.ann\.password_env: LMQ_TEST_NOT_SET is not set")


@pytest.mark.slow
def test_wrong_settings_are_said_in_one_line(tmp_path):
    config = tmp_path / "lmq.toml"
    config.write_text("[mqtt]\nlissten = 'off'\n")
    _check_refused(
        _lmq("serve", "--config", str(config)), r"unknown setting mqtt\.lissten .*; did you mean mqtt\.listen\?"
    )
    _check_refused(_lmq("serve", "--flush", "sometimes"), r"wrong setting store\.flush\.mode in the command line")
    _check_refused(_lmq("serve", "--data-dir", ""), r"wrong setting data_dir in the command line: must name a folder")
    broken = {**os.environ, "LMQ_AUTH__USERS": "{bad"}
    _check_refused(_lmq("serve", env=broken), r"wrong setting LMQ_AUTH__USERS in the environment: not JSON")


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
    admin = f"127.0.0.1:{running.port('admin')}"
    result = _call("explain", "topic", "x/y/z", "--admin", f"http://{admin}/")
    assert result.stdout.startswith("x/y/z is stored once on LMQ_PARENT and reaches 0 light queues")
    found = json.loads(_call("explain", "topic", "x/y/z", "--admin", admin, "--json").stdout)
    assert found == {"topic": "x/y/z", "parent_topic": "LMQ_PARENT", "queues": []}


def test_explained_queues_are_listed_with_filters_and_readers():
    queue = {"name": "%LMQ%mqtt%q", "filters": ["a/+", "a/#"], "bindings": [], "subscriptions": 3, "readers": 2}
    other = {**queue, "name": "%LMQ%amqp%|2f%q", "bindings": ["amq.topic a.*", "amq.topic a.#"], "max_offset": 0}
    found = {"topic": "a/b", "parent_topic": "LMQ_PARENT", "queues": [{**queue, "max_offset": 7}, other]}
    assert _explained(found) == [
        "a/b is stored once on LMQ_PARENT and reaches 2 light queues",
        "  %LMQ%mqtt%q",
        "    filters: a/+, a/#",
        "    subscriptions: 3  readers: 2  next: 7",
        "  %LMQ%amqp%|2f%q",
        "    filters: a/+, a/#",
        "    bindings: amq.topic a.*, amq.topic a.#",
        "    subscriptions: 3  readers: 2  next: 0",
    ]
    assert _explained({**found, "queues": [other]})[0].endswith("reaches 1 light queue")


def test_explained_exchange_is_named_with_its_kind_and_the_key():
    question = {"exchange": "jobs", "kind": "direct", "routing_key": "new", "topic": "new"}
    queue = {"name": "%LMQ%amqp%|2f%q", "filters": [], "bindings": ["jobs new"], "subscriptions": 1, "readers": 0}
    found = {**question, "parent_topic": "LMQ_PARENT", "queues": [{**queue, "max_offset": 7}]}
    assert _explained(found) == [
        "routing key 'new' on direct exchange 'jobs' is stored once on LMQ_PARENT and reaches 1 light queue",
        "  %LMQ%amqp%|2f%q",
        "    bindings: jobs new",
        "    subscriptions: 1  readers: 0  next: 7",
    ]


def test_what_an_exchange_leads_nowhere_is_said_to_be_dropped():
    question = {"exchange": "jobs", "kind": "direct", "routing_key": "odd", "topic": "odd"}
    found = {**question, "parent_topic": "LMQ_PARENT", "queues": []}
    assert _explained(found) == [
        (
            "routing key 'odd' on direct exchange 'jobs' leads to no queue: a message is confirmed and dropped, "
            "one that is mandatory comes back"
        )
    ]
    assert "is stored once" in _explained({**found, "exchange": "amq.topic"})[0]


@pytest.mark.slow
def test_explain_asks_for_an_exchange(running):
    url = "amqp://guest:guest@{}:{}/".format(*running.address("amqp"))
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        channel.exchange_declare("jobs")
        channel.queue_declare("work")
        channel.queue_bind("work", "jobs", "new")
    admin = f"127.0.0.1:{running.port('admin')}"
    assert "    bindings: jobs new" in _call("explain", "exchange", "jobs", "new", "--admin", admin).stdout.splitlines()
    result = _call("explain", "exchange", "", "work", "--admin", admin)
    assert result.stdout.startswith(
        "routing key 'work' on direct exchange '' is stored once on LMQ_PARENT and reaches 1"
    )
    _check_told(_call("explain", "exchange", "none", "--admin", admin), "^lmq: no exchange 'none' in vhost '/'$")


@pytest.mark.slow
@pytest.mark.parametrize("topic", ["a/+/b", "a/#", "#"])
def test_explain_refuses_a_filter_in_one_line(running, topic):
    result = _call("explain", "topic", topic, "--admin", f"127.0.0.1:{running.port('admin')}")
    _check_told(result, f"^lmq: {re.escape(topic)} is a filter, with \\+ or #: a message has a topic without them")
    assert result.stdout == ""


def test_explain_without_a_gateway_says_so():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        admin = f"127.0.0.1:{free.getsockname()[1]}"
        _check_told(_call("explain", "topic", "a", "--admin", admin), "cannot ask the gateway")
    _check_told(_call("explain", "topic", "a", "--admin", "ftp://nowhere"), "not an http address")
    _check_told(_call("explain", "topic", "a", "--admin", "nowhere:port"), "cannot ask the gateway")


def test_config_is_shown_as_it_would_be_used(tmp_path):
    config = tmp_path / "lmq.toml"
    config.write_text("[amqp]\nlisten = 'off'\n")
    shown = tomllib.loads(_call("config", "show", "--config", str(config)).stdout)
    assert shown["amqp"]["listen"] == "off"
    assert shown["store"]["flush"]["mode"] == "sync"
    assert _call("config", "check").stdout == "settings are fine\n"
    config.write_text("[amqp]\nlissten = 'off'\n")
    _check_told(_call("config", "check", "--config", str(config)), r"did you mean amqp\.listen\?")
    config.write_text("[auth.users.alice]\npassword_hash = 'secret'\n")
    _check_told(
        _call("config", "check", "--config", str(config)), r"auth\.users\.alice\.password_hash: of no known kind"
    )


def test_shown_config_is_a_config_and_its_secrets_are_shown_only_where_they_are_asked_for(tmp_path):
    kept = hash_password("secret")
    config, shown = tmp_path / "lmq.toml", tmp_path / "shown.toml"
    config.write_text(f"[auth.users.alice]\npassword_hash = '{kept}'\n")
    shown.write_text(_call("config", "show", "--config", str(config)).stdout)
    assert kept not in shown.read_text()
    _check_told(
        _call("config", "check", "--config", str(shown)),
        r"wrong setting auth\.users\.alice\.password_hash in .*: is hidden, .* use lmq config show --secrets",
    )
    shown.write_text(_call("config", "show", "--secrets", "--config", str(config)).stdout)
    assert kept in shown.read_text()
    assert _call("config", "check", "--config", str(shown)).stdout == "settings are fine\n"
    assert load_settings(shown, {}) == load_settings(config, {})


def test_shown_config_without_secrets_loads_back(tmp_path):
    shown = tmp_path / "shown.toml"
    shown.write_text(_call("config", "show").stdout)
    assert _call("config", "check", "--config", str(shown)).stdout == "settings are fine\n"


def test_other_systems_are_refused_in_one_line(monkeypatch):
    monkeypatch.setattr("sys.platform", "darwin")
    _check_told(_call("serve"), "^lmq: the gateway runs on Linux; this is darwin$")


def test_small_commands():
    assert _call("--version").stdout == f"lmq-gateway {VERSION}\n"
    assert _call("config", "doc").stdout == settings_page()
    assert check_password(b"secret", _call("hash-password", "--password", "secret").stdout.strip())
    kept = _call("hash-password", "--password", "secret", "--scram", "--rounds", "5000").stdout.strip()
    assert kept.startswith("scram-sha-256$5000$")
    assert check_password(b"secret", kept)
    assert not check_password(b"Secret", kept)


@pytest.mark.slow
def test_hash_of_a_password_from_a_pipe_stands_alone_on_stdout():
    result = _lmq("hash-password", input="secret\n")
    assert (result.returncode, result.stderr) == (0, "")
    (line,) = result.stdout.splitlines()
    assert check_password(b"secret", line)
    _check_refused(_lmq("hash-password", input=""), "the password is empty")


def _type_passwords(*passwords):
    """Return what `lmq hash-password` says on stdout and on its terminal, and its exit code."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "gateway", "hash-password"],
        cwd=ROOT,
        stdin=theirs,
        stderr=theirs,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # no terminal but this one
    )
    os.close(theirs)
    said = b""
    with os.fdopen(ours, "r+b", buffering=0) as terminal:
        for number, password in enumerate(passwords, 1):
            while said.count(b": ") < number:
                said += terminal.read(1)
            terminal.write(password + b"\n")
        out, _ = process.communicate(timeout=30)
        with contextlib.suppress(OSError):  # EIO: nobody has the other end any more
            while more := terminal.read(1024):
                said += more
    return out, said.decode(), process.returncode


@pytest.mark.slow
def test_hash_of_a_password_that_is_asked_for_stands_alone_on_stdout():
    out, said, code = _type_passwords(b"secret", b"secret")
    assert code == 0, said
    (line,) = out.splitlines()
    assert check_password(b"secret", line)
    assert "secret" not in said
    out, said, code = _type_passwords(b"secret", b"sacred")
    assert (out, code) == ("", 2)
    assert "lmq: the two passwords differ" in said


@pytest.mark.slow
@pytest.mark.parametrize("line", ["--help", "explain --help", "explain topic a --admin ftp://"])
def test_small_commands_load_none_of_the_gateway(line):
    program = f"import sys; sys.argv[1:] = {line.split()!r}\nfrom gateway.cli import main\n"
    program += "try: main()\nexcept SystemExit: pass\nprint(*sys.modules, file=sys.stderr)"
    loaded = set(_python("-c", program).stderr.split())
    heavy = {"asyncio", "fastapi", "rich", "uvicorn", "uvloop", "sqlite3", "prometheus_client", "pamqp"}
    if line == "--help":
        heavy.add("pydantic")  # which typer takes for a command's own options
    assert not heavy & loaded
    ours = {name for name in loaded if name.partition(".")[0] in {"core", "gateway", "spark_analytics"}}
    assert ours == {"gateway", "gateway.cli", "gateway.version"}


def test_report_without_spark_names_the_line_that_adds_it(tmp_path, monkeypatch):
    monkeypatch.setattr("gateway.cli.find_spec", lambda name: None)
    result = _call("report", "fan-out", "--data-dir", str(tmp_path), "--out", str(tmp_path / "out"))
    _check_told(result, r"pip install 'lmq-gateway\[spark\]'")


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("option", ["--data-dir", "--out"])
def test_report_with_an_empty_folder_is_refused_in_one_line(tmp_path, option):
    folders = {"--data-dir": str(tmp_path), "--out": str(tmp_path / "out")} | {option: ""}
    result = _lmq("report", "fan-out", *[part for pair in folders.items() for part in pair])
    _check_refused(result, f"^lmq: {option} must name a folder; the current one is \\.$")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.spark
def test_report_is_made_beside_the_running_gateway(running, tmp_path):
    _publish(running, "plant/1/temp", "21.5")
    result = _lmq("report", "fan-out", "--data-dir", str(running.data_dir), "--out", str(tmp_path / "report"))
    assert result.returncode == 0, result.stderr
    assert "<html" in (tmp_path / "report" / "index.html").read_text()
