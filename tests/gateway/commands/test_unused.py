from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import typer
from typer.core import TyperGroup

from gateway.commands.main import cli
from tests.support.commands import call_lmq, check_told

WORDS = {  # what a command needs besides a word for each of its arguments
    ("definitions", "import"): ("FILE",),
    ("explain", "exchange"): ("x", "y"),
    ("explain", "publish"): ("--topic", "a/b"),
    ("explain", "right"): ("read", "x"),
    ("policy", "set"): ("x", "^a", "{}"),
    ("queue", "replay"): ("x", "--offset", "0"),
    ("report", "fan-out"): ("--data-dir", "x", "--out", "y"),
    ("rule", "add"): ("x", "allow"),
    ("rule", "move"): ("x", "--last"),
    ("token", "add"): ("x", "--scope", "read"),
    ("user", "add"): ("x", "--generate"),
    ("user", "passwd"): ("x", "--generate"),
    ("version",): ("--server",),
}


def each_command(group=None, path=()):
    """Yield each command with the words that call it."""
    for name, command in (group or typer.main.get_command(cli)).commands.items():
        if isinstance(command, TyperGroup):
            yield from each_command(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = dict(each_command())


def asks_gateway(command):
    return {"admin", "user", "password"} <= {one.name for one in command.params}


ASKING = [path for path, command in COMMANDS.items() if asks_gateway(command)]
OTHERS = [path for path, command in COMMANDS.items() if not asks_gateway(command)]


def line_of(path, tmp_path):
    """Return the words of a command with as many arguments as it needs."""
    if path not in WORDS:
        wanted = [one for one in COMMANDS[path].params if one.param_type_name == "argument" and one.required]
        return (*path, *("x" for _ in wanted))
    file = tmp_path / "definitions.json"
    file.write_text("{}")
    return (*path, *(str(file) if word == "FILE" else word for word in WORDS[path]))


class Recorder(ThreadingHTTPServer):
    """A gateway's admin API that is busy, and keeps who asked it."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Asked)
        self.logins = []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class _Asked(BaseHTTPRequestHandler):
    def __getattr__(self, name):
        """Return what answers a method, such as `do_GET`."""
        if name.startswith("do_"):
            return self._answer
        raise AttributeError(name)

    def _answer(self):
        self.server.logins.append(self.headers.get("Authorization", ""))
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = json.dumps({"error": "busy", "reason": "not now"}).encode()
        self.send_response(503)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Print nothing."""


@pytest.fixture(scope="module")
def busy():
    """A gateway that is asked, whichever answer commands make of it."""
    server = Recorder()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("path", ASKING, ids=" ".join)
def test_a_command_asks_the_gateway_that_is_named_as_the_user_that_is_named(path, tmp_path, busy):
    line = line_of(path, tmp_path)
    elsewhere = {"LMQ_CLI_ADMIN": "127.0.0.1:1", "LMQ_CLI_USER": None, "LMQ_TOKEN": None}
    for before, after, login in (
        (("--url", busy.url, "--token", "t0ken"), (), "Bearer t0ken"),
        ((), ("--admin", busy.url, "--user", "ann", "--password", "x"), "Basic YW5uOng="),
        (("--url", busy.url), ("--user", "ann", "--password", "x", "--json"), "Basic YW5uOng="),
    ):
        busy.logins.clear()
        result = call_lmq(*before, *line, *after, env=elsewhere)
        assert set(busy.logins) == {login}, result.output
        assert result.exit_code == 7, result.output


@pytest.mark.parametrize("path", OTHERS, ids=" ".join)
def test_a_command_that_asks_no_gateway_refuses_to_be_led_to_one(path, tmp_path, busy):
    busy.logins.clear()
    for option, value in (("--url", busy.url), ("--token", "t0ken")):
        result = call_lmq(option, value, *line_of(path, tmp_path))
        check_told(result, rf"^lmq: {option} is for commands that ask a gateway's admin API, not for this one")
    assert busy.logins == []


def test_a_token_on_the_command_line_goes_before_a_user_of_the_environment(busy):
    for before, env, login in (
        (("--token", "t0ken"), {"LMQ_CLI_USER": "ann", "LMQ_CLI_PASSWORD": "x"}, "Bearer t0ken"),
        ((), {"LMQ_TOKEN": "t0ken", "LMQ_CLI_USER": "ann", "LMQ_CLI_PASSWORD": "x"}, "Basic YW5uOng="),
        ((), {"LMQ_TOKEN": "t0ken"}, "Bearer t0ken"),
    ):
        busy.logins.clear()
        call_lmq(*before, "status", "--admin", busy.url, env=env)
        assert busy.logins == [login]


REFUSED = (
    ("--url h status --admin h", "--admin names a gateway, as --url does"),
    ("--token t status --user ann", "--user logs in, as --token does"),
    ("status --password x", "--password is for --user$"),
    ("user passwd ann --password x", "--password is for --user; for the new password"),
    ("version --admin h", "--admin needs --server"),
    ("--url h version", "--url needs --server"),
    ("config show --admin h --secrets", "--secrets is for settings of this machine, and --admin names a gateway"),
    ("--url h config show --config c", "--config is for settings of this machine, and --url names a gateway"),
    ("config show --user ann", "--user is for a gateway: name it by --admin"),
    ("--token t config show", "--token is for a gateway: name it by --admin"),
    ("hash-password --password x --rounds 5000", "--rounds needs --scram"),
    ("log level --logger gateway", "--logger needs "),
    ("grant ann --all --read a", "--read is part of --all"),
    ("subscribe a --json --output hex", "--output says another form than --json"),
    ("publish a b --exchange x", "--exchange is for amqp, not for mqtt"),
    ("publish a b --door amqp --retain", "--retain is for mqtt, not for amqp"),
    ("publish a b --door rocketmq --expires 5", "--expires is for mqtt and amqp, not for rocketmq"),
    ("publish a b --tags x", "--tags is for rocketmq, not for mqtt"),
    ("publish a b --door rocketmq --vhost x", "--vhost is for amqp, not for rocketmq"),
    ("publish a b --door amqp --client x", "--client is for mqtt, not for amqp"),
    ("publish a b --key k", "--key needs --cert"),
    ("publish a b --password x", "--password is for --user"),
    ("subscribe a --exchange x", "--exchange is for amqp, not for mqtt"),
    ("consume q --group g", "--group is for mqtt and rocketmq, not for amqp"),
    ("consume q --qos 1", "--qos has no effect here at amqp"),
    ("bench sub --door rocketmq --qos 0", "--qos has no effect here at rocketmq"),
    ("bench pub --door mqtt --exchange x", "--exchange is for amqp, not for mqtt"),
    ("queue peek %LMQ%mqtt%a --door mqtt", "leave --door and --vhost out"),
    ("queue move %DLQ%g --vhost x", "--vhost is for queues of AMQP"),
)


@pytest.mark.parametrize(("line", "told"), REFUSED, ids=[line for line, _ in REFUSED])
def test_an_option_that_would_not_be_heeded_is_refused(line, told):
    env = {"LMQ_CLI_USER": None, "LMQ_CLI_PASSWORD": None, "LMQ_TOKEN": None, "LMQ_CLI_SERVER": None}
    check_told(call_lmq(*line.split(), env=env), told)


def test_what_stands_in_the_environment_is_not_refused_where_it_says_nothing():
    env = {"LMQ_TOKEN": "t0ken", "LMQ_CLI_ADMIN": "elsewhere:1", "LMQ_CLI_USER": "ann", "LMQ_CLI_PASSWORD": "x"}
    assert call_lmq("config", "check", env=env).stdout == "settings are fine\n"
    assert call_lmq("config", "show", env=env).exit_code == 0
    assert call_lmq("version", env=env).exit_code == 0
