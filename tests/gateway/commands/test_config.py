from __future__ import annotations

import datetime as dt
import json
import threading
import tomllib
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from gateway.auth.users import hash_password
from gateway.runtime.loop import Clock
from gateway.settings.reading import load_settings
from tests.support.certificates import issue
from tests.support.commands import call_lmq, check_told, told_json


def test_config_is_shown_as_it_would_be_used(tmp_path):
    config = tmp_path / "lmq.toml"
    config.write_text("[amqp]\nlisten = 'off'\n")
    shown = tomllib.loads(call_lmq("config", "show", "--config", str(config)).stdout)
    assert shown["amqp"]["listen"] == "off"
    assert shown["store"]["flush"]["mode"] == "sync"
    assert call_lmq("config", "check").stdout == "settings are fine\n"
    config.write_text("[amqp]\nlissten = 'off'\n")
    check_told(call_lmq("config", "check", "--config", str(config)), r"did you mean amqp\.listen\?")
    config.write_text("[auth.users.alice]\npassword_hash = 'secret'\n")
    check_told(
        call_lmq("config", "check", "--config", str(config)), r"auth\.users\.alice\.password_hash: of no known kind"
    )


def test_files_of_bridges_that_cannot_be_read_are_told(tmp_path):
    config, kept = tmp_path / "lmq.toml", tmp_path / "password"
    kept.write_text("x")
    config.write_text(
        f"[bridges.far]\naddress = 'h:1'\npassword_file = '{kept}'\ntopics = [{{ filter = '#' }}]\n"
        f"[bridges.far.tls]\nca = '{tmp_path}/none.pem'\n"
    )
    told = call_lmq("config", "check", "--config", str(config))
    assert told.stdout == "settings are fine\n"
    assert told.stderr == (
        f"lmq: warning: bridges.far.tls.ca: cannot read {tmp_path}/none.pem: No such file or directory\n"
    )


def test_settings_are_told_to_programs_without_secrets(tmp_path):
    config, conf = tmp_path / "lmq.toml", tmp_path / "mosquitto.conf"
    kept = hash_password("secret")
    config.write_text(f"data_dir = 'd'\n[amqp]\nlisten = 'off'\n[auth.users.alice]\npassword_hash = '{kept}'\n")
    told = told_json("config", "show", "--config", str(config))
    assert (told["amqp"]["listen"], told["data_dir"], told["store"]["flush"]["mode"]) == ("off", "d", "sync")
    assert kept not in json.dumps(told)
    assert kept in json.dumps(told_json("config", "show", "--secrets", "--config", str(config)))
    assert told_json("config", "check", "--config", str(config)) == {"fine": True, "warnings": []}
    conf.write_text("listener 1883\nlog_dest syslog\n")
    told = told_json("config", "from-mosquitto", str(conf), code=3)
    assert told["left_out"] == ["mosquitto.conf:2: log_dest syslog"]
    assert "mqtt" in told["settings"]


@pytest.mark.slow
def test_settings_in_force_are_those_of_the_gateway_that_is_named(running, tmp_path, monkeypatch):
    config = tmp_path / "lmq.toml"
    config.write_text("[mqtt]\ninflight_max = 7\n")
    monkeypatch.setenv("LMQ_CONFIG", str(config))
    url = f"http://127.0.0.1:{running.port('admin')}"
    assert told_json("config", "show")["mqtt"]["inflight_max"] == 7
    for before, after in ((("--url", url), ()), ((), ("--admin", url))):
        told = told_json(*before, "config", "show", *after)
        assert (told["mqtt"]["inflight_max"] != 7, told["admin"]["listen"]) == (True, "127.0.0.1:0")
        shown = tomllib.loads(call_lmq(*before, "config", "show", *after).stdout)
        assert shown["mqtt"]["inflight_max"] == told["mqtt"]["inflight_max"]
    check_told(call_lmq("--url", url, "config", "show", "--user", "guest", "--password", "no"), "", code=5)


class OlderGateway(BaseHTTPRequestHandler):
    """Tells its settings as a file alone."""

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"text": "[mqtt]\n"}).encode())

    def log_message(self, *_):
        pass


def test_settings_of_an_older_gateway_are_told_as_it_tells_them():
    with HTTPServer(("127.0.0.1", 0), OlderGateway) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        admin = "--admin", f"127.0.0.1:{server.server_port}"
        shown, refused = call_lmq("config", "show", *admin), call_lmq("config", "show", *admin, "--json")
        server.shutdown()
        thread.join()
    assert shown.stdout == "[mqtt]\n"
    check_told(refused, "that gateway is older and tells its settings as text alone: leave out --json", code=4)


def test_keys_of_tokens_are_read_when_the_config_is_checked(tmp_path):
    config = tmp_path / "lmq.toml"
    config.write_text(f"[auth.jwt]\nalgorithms = ['RS256']\npublic_key = '{tmp_path}/none.pem'\n")
    check_told(
        call_lmq("config", "check", "--config", str(config)), r"auth\.jwt\.public_key: .*none\.pem cannot be read"
    )


def test_back_ends_are_made_when_the_config_is_checked(tmp_path):
    config = tmp_path / "lmq.toml"
    query = "SELECT hash FROM users WHERE name = ${username}"
    config.write_text(f"[[auth.backends]]\nkind = 'sql'\ndsn = 'sqlite:{tmp_path}/none.db'\nquery = '{query}'\n")
    check_told(
        call_lmq("config", "check", "--config", str(config)), r"auth\.backends\[0\] dsn: there is no file .*none"
    )


def test_passwords_of_bridges_are_looked_for_when_the_config_is_checked(tmp_path):
    config = tmp_path / "lmq.toml"
    config.write_text(
        "[bridges.cloud]\naddress = 'h:1883'\npassword_env = 'NOT_SET_ANYWHERE'\ntopics = [{filter = 'a'}]\n"
    )
    check_told(
        call_lmq("config", "check", "--config", str(config)),
        r"bridges\.cloud\.password_env: NOT_SET_ANYWHERE is not set",
    )


def test_a_certificate_that_has_expired_is_told_when_the_config_is_checked(tmp_path):
    config = tmp_path / "lmq.toml"
    for is_expired in (False, True):
        certificate, key = issue(tmp_path / str(is_expired), is_expired=is_expired)
        tls = f"{{ certificate = '{certificate}', key = '{key}' }}"
        config.write_text(f"[mqtt]\nlisten = [{{ address = '127.0.0.1:8883', tls = {tls} }}]\n")
        checked = call_lmq("config", "check", "--config", str(config))
        assert (checked.exit_code, checked.stdout) == (0, "settings are fine\n")
        told = f"lmq: warning: the certificate in {certificate} has expired\n"
        assert checked.stderr == (told if is_expired else "")


@pytest.mark.parametrize(("hours", "told"), [(12, "within a day"), (36, "in 1 day"), (84, "in 3 days"), (24 * 60, "")])
def test_a_certificate_that_expires_soon_is_told_when_the_config_is_checked(tmp_path, hours, told):
    not_after = dt.datetime.fromtimestamp(Clock().now_ms() / 1_000, dt.UTC) + dt.timedelta(hours=hours)
    certificate, key = issue(tmp_path, not_after=not_after)
    config = tmp_path / "lmq.toml"
    tls = f"{{ certificate = '{certificate}', key = '{key}' }}"
    config.write_text(f"[mqtt]\nlisten = [{{ address = '127.0.0.1:8883', tls = {tls} }}]\n")
    checked = call_lmq("config", "check", "--config", str(config))
    assert checked.exit_code == 0
    assert checked.stderr == (f"lmq: warning: the certificate in {certificate} expires {told}\n" if told else "")


def test_shown_config_is_a_config_and_its_secrets_are_shown_only_where_they_are_asked_for(tmp_path):
    kept = hash_password("secret")
    config, shown = tmp_path / "lmq.toml", tmp_path / "shown.toml"
    config.write_text(f"[auth.users.alice]\npassword_hash = '{kept}'\n")
    shown.write_text(call_lmq("config", "show", "--config", str(config)).stdout)
    assert kept not in shown.read_text()
    check_told(
        call_lmq("config", "check", "--config", str(shown)),
        r"wrong setting auth\.users\.alice\.password_hash in .*: is hidden, .* use lmq config show --secrets",
    )
    shown.write_text(call_lmq("config", "show", "--secrets", "--config", str(config)).stdout)
    assert kept in shown.read_text()
    assert call_lmq("config", "check", "--config", str(shown)).stdout == "settings are fine\n"
    assert load_settings(shown, {}) == load_settings(config, {})


def test_shown_config_without_secrets_loads_back(tmp_path):
    shown = tmp_path / "shown.toml"
    shown.write_text(call_lmq("config", "show").stdout)
    assert call_lmq("config", "check", "--config", str(shown)).stdout == "settings are fine\n"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("data_dir = 3", "data_dir in .*: must name a folder"),
        ("[mqtt]\nconnections_max = 'x'", "mqtt.connections_max in .*: must be a whole number, and not 'x'$"),
        ("[auth]\namqp_guest = 'maybe'", "auth.amqp_guest in .*: must be true or false, and not 'maybe'$"),
    ],
)
def test_a_setting_of_another_type_is_told_in_an_operators_words(tmp_path, line, told):
    config = tmp_path / "lmq.toml"
    config.write_text(line)
    check_told(call_lmq("config", "check", "--config", str(config)), told)


def test_file_of_the_audit_log_is_looked_at_and_not_made(tmp_path):
    config = tmp_path / "lmq.toml"
    config.write_text(f"[audit]\nfile = '{tmp_path}/none/audit.log'\n")
    check_told(
        call_lmq("config", "check", "--config", str(config)),
        r"audit\.file: cannot write .*/none/audit\.log: No such file or directory",
    )
    config.write_text(f"[audit]\nfile = '{tmp_path}'\n")
    check_told(call_lmq("config", "check", "--config", str(config)), r"audit\.file: cannot write .*: Is a directory")
    config.write_text(f"[audit]\nfile = '{tmp_path}/audit.log'\n")
    assert call_lmq("config", "check", "--config", str(config)).stdout == "settings are fine\n"
    assert not (tmp_path / "audit.log").exists()


def test_back_end_that_gets_passwords_in_clear_is_warned_of(tmp_path):
    config = tmp_path / "lmq.toml"
    config.write_text("[[auth.backends]]\nkind = 'http'\nurl = 'http://auth.example.com/login'\n")
    told = call_lmq("config", "check", "--config", str(config))
    assert (told.exit_code, told.stdout) == (0, "settings are fine\n")
    assert "warning: passwords go to a back end in clear" in told.stderr
    assert "auth.backends[0] url=http://auth.example.com/login" in told.stderr


def test_mosquitto_conf_is_printed_as_settings_and_what_is_left_out_is_told(tmp_path):
    conf, made = tmp_path / "mosquitto.conf", tmp_path / "lmq.toml"
    conf.write_text("listener 1883\nlog_dest syslog\n")
    done = call_lmq("config", "from-mosquitto", str(conf))
    assert done.exit_code == 3
    assert done.stderr == "lmq: left out: mosquitto.conf:2: log_dest syslog\n"
    made.write_text(done.stdout)
    assert [one.address for one in load_settings(made, {}).mqtt.listen] == ["0.0.0.0:1883"]
    conf.write_text("listener 1883\n")
    assert call_lmq("config", "from-mosquitto", str(conf)).exit_code == 0
    check_told(call_lmq("config", "from-mosquitto", str(tmp_path / "none")), "cannot read .*none")
