from __future__ import annotations

import os
from pathlib import Path

import pytest

from gateway.settings.models import GatewaySettings, SettingsError
from gateway.settings.reading import load_settings


@pytest.fixture(autouse=True)
def _no_settings_around(monkeypatch):
    for name in [name for name in os.environ if name.startswith("LMQ_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "lmq.toml"

    def write(text):
        path.write_text(text)
        return path

    return write


def test_defaults_stand_where_nobody_says_otherwise():
    settings = load_settings(None, {})
    assert settings == GatewaySettings()
    assert settings.mqtt.listen == "127.0.0.1:1883"
    assert settings.store.flush.mode == "sync"


def test_file_then_environment_then_flags_win(config, monkeypatch):
    path = config('[mqtt]\nlisten = "127.0.0.1:1"\nconnections_max = 7\n[amqp]\nlisten = "off"\n')
    assert load_settings(path, {}).mqtt.listen == "127.0.0.1:1"
    monkeypatch.setenv("LMQ_MQTT__LISTEN", "127.0.0.1:2")
    assert load_settings(path, {}).mqtt.listen == "127.0.0.1:2"
    settings = load_settings(path, {"mqtt": {"listen": "127.0.0.1:3"}, "data_dir": Path("elsewhere")})
    assert settings.mqtt.listen == "127.0.0.1:3"
    assert settings.mqtt.connections_max == 7
    assert settings.amqp.listen == "off"
    assert settings.data_dir == Path("elsewhere")


def test_file_may_begin_with_the_mark_that_some_editors_write(config):
    assert load_settings(config("\ufeff[mqtt]\nconnections_max = 7\n"), {}).mqtt.connections_max == 7


def test_nested_settings_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("LMQ_STORE__FLUSH__MODE", "async")
    monkeypatch.setenv("LMQ_STORE__FLUSH__INTERVAL_MS", "20")
    monkeypatch.setenv("LMQ_AUTH__MQTT_ANONYMOUS", "false")
    settings = load_settings(None, {})
    assert (settings.store.flush.mode, settings.store.flush.interval_ms) == ("async", 20)
    assert settings.auth.mqtt_anonymous is False


def test_users_come_from_the_file(config):
    settings = load_settings(config('[auth.users.alice]\npassword_env = "X"\nmay_publish = false\n'), {})
    assert settings.auth.users["alice"].may_publish is False


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[mqtt]\nlisen = 'off'", "unknown setting mqtt.lisen in {path}; did you mean mqtt.listen?"),
        ("[store.flsh]\nmode = 'sync'", "unknown setting store.flsh in {path}; did you mean store.flush?"),
        ("[mqtt]\nlisten = 'here'", "wrong setting mqtt.listen in {path}: must be HOST:PORT"),
        ("[mqtt]\nlisten = 'h:99999'", "wrong setting mqtt.listen in {path}: the port is at most 65535, and not 99999"),
        (
            "[telemetry]\nendpoint = 'x'",
            "wrong setting telemetry.endpoint in {path}: must be an address, such as http:",
        ),
        ("[auth.users.bob]\ntags = 7", "wrong setting auth.users.bob.tags in {path}: must be a list"),
        (
            "[mqtt]\nlisten = 7",
            "wrong setting mqtt.listen in {path}: must be HOST:PORT (port 0 picks one), off, or a list",
        ),
        (
            "[mqtt]\nlisten = [{address = 'h:1', tls = {certificate = 'a', keys = 'b'}}]",
            "unknown setting mqtt.listen.0.tls.keys in {path}; did you mean mqtt.listen.0.tls.key?",
        ),
        ("[mqtt]\nlisten = ['h:1', {}]", "wrong setting mqtt.listen.1.address in {path}: is missing"),
        ("[mqtt]\nlisten = '::1:1883'", "wrong setting mqtt.listen in {path}: an IPv6 host needs brackets"),
        (
            "[store.flush]\nmode = 'never'",
            "wrong setting store.flush.mode in {path}: must be 'sync' or 'async', and not 'never'",
        ),
        (
            "[store.flush]\ninterval_ms = 0",
            "wrong setting store.flush.interval_ms in {path}: must be at least 1, and not 0",
        ),
        (
            "[auth]\namqp_guest = 'no way'",
            "wrong setting auth.amqp_guest in {path}: must be true or false, and not 'no way'",
        ),
        ("[amqp]\nheartbeat_s = 1.5", "wrong setting amqp.heartbeat_s in {path}: must be a whole number, and not 1.5"),
        (
            "[auth.user_limits]\nbytes_rate = 9007199254740992",
            "wrong setting auth.user_limits.bytes_rate in {path}: must be at most 9007199254740991, and not ",
        ),
        (
            "[mqtt]\nmessages_rate = 9223372036854775808",
            "wrong setting mqtt.messages_rate in {path}: must be at most 9007199254740991, and not 9223372036854775808",
        ),
        (
            "[mqtt]\nlisten = [{address = 'h:1', messages_rate = 9007199254740992}]",
            "wrong setting mqtt.listen.0.messages_rate in {path}: must be at most 9007199254740991, and not ",
        ),
        (
            "[store.retention]\nbytes_max = 9223372036854775808",
            "wrong setting store.retention.bytes_max in {path}: must be at most 9007199254740991, and not ",
        ),
        ("[mqtt]\nport = 1883", "unknown setting mqtt.port in {path}; did you mean mqtt.listen?"),
        ("[stor]\nqueues_max = 1", "unknown setting stor in {path}; did you mean store?"),
        (
            "[mqtt]\nlisten = [{address = 'h:1', proxies = ['10.0.0.0/99']}]",
            "wrong setting mqtt.listen.0.proxies.0 in {path}: must be an address or a network, such as 10.0.0.0/8: ",
        ),
        ("[amqp]\nlisten = '127.0.0.1:1883'", "wrong settings: mqtt.listen and amqp.listen are both 127.0.0.1:1883"),
        ("[mqtt]\nlisten = ['h:1', 'h:1']", "wrong settings: mqtt.listen has h:1 twice"),
        (
            "[rocketmq]\nadvertised_host = 'h:10911'",
            "wrong setting rocketmq.advertised_host in {path}: must be a host's name or address alone, without a port",
        ),
        (
            "[[auth.rules]]\npermit = 'allow'\nusername = ['bob']",
            "unknown setting auth.rules.0.username in {path}; did you mean auth.rules.0.users?",
        ),
        ("[mqtt", "{path} is not TOML: "),
    ],
)
def test_wrong_file_is_said_in_one_line(config, text, message):
    path = config(text)
    with pytest.raises(SettingsError) as caught:
        load_settings(path, {})
    assert str(caught.value).startswith(message.format(path=path))
    assert "\n" not in str(caught.value)


def test_file_that_is_not_there_is_said(tmp_path):
    with pytest.raises(SettingsError, match=r"cannot read .*: No such file"):
        load_settings(tmp_path / "none.toml", {})


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        ("LMQ_MQTT__LISEN", "unknown setting mqtt.lisen in the environment; did you mean mqtt.listen?"),
        ("LMQ_MQT__LISTEN", "unknown setting LMQ_MQT__LISTEN in the environment; did you mean LMQ_MQTT__LISTEN?"),
        ("LMQ_DATADIR", "unknown setting LMQ_DATADIR in the environment; did you mean LMQ_DATA_DIR?"),
        ("LMQ_ZZZZZZZZ", "unknown setting LMQ_ZZZZZZZZ in the environment"),
    ],
)
def test_wrong_variable_is_said(monkeypatch, variable, message):
    monkeypatch.setenv(variable, "off")
    with pytest.raises(SettingsError) as caught:
        load_settings(None, {})
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("variable", "text", "message"),
    [
        ("LMQ_AUTH__USERS", "{bad", "wrong setting LMQ_AUTH__USERS in the environment: not JSON: Expecting"),
        ("LMQ_MQTT", "off", "wrong setting LMQ_MQTT in the environment: not JSON: Expecting value"),
        ("lmq_mqtt", "off", "wrong setting LMQ_MQTT in the environment: not JSON: Expecting value"),
        ("LMQ_AUTH__USERS", '["ann"]', "wrong setting auth.users in the environment: must be a table of settings"),
        ("LMQ_MQTT", "5", "wrong setting mqtt in the environment: must be a table of settings"),
        ("LMQ_DATA_DIR", "", "wrong setting data_dir in the environment: must name a folder; the current one is ."),
    ],
)
def test_variable_that_cannot_be_read_is_said(monkeypatch, variable, text, message):
    monkeypatch.setenv("LMQ_MQTT__INFLIGHT_MAX", "7")
    monkeypatch.setenv(variable, text)
    with pytest.raises(SettingsError) as caught:
        load_settings(None, {})
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_users_may_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("LMQ_AUTH__USERS", '{"ann": {"password_env": "X"}}')
    monkeypatch.setenv("LMQ_AUTH__USERS__BOB", '{"password_env": "Y"}')
    users = load_settings(None, {}).auth.users
    assert {name: user.password_env for name, user in users.items()} == {"ann": "X", "bob": "Y"}


def test_variables_of_the_build_and_the_tests_are_no_settings(monkeypatch):
    monkeypatch.setenv("LMQ_COMPILE", "none")
    monkeypatch.setenv("LMQ_CONFIG", "lmq.toml")
    monkeypatch.setenv("LMQ_TEST_ANYTHING", "1")
    load_settings(None, {})


def test_wrong_flag_is_said():
    with pytest.raises(SettingsError, match=r"wrong setting amqp\.listen in the command line"):
        load_settings(None, {"amqp": {"listen": "5672"}})


def test_a_list_of_addresses_comes_from_the_environment_as_json(monkeypatch):
    monkeypatch.setenv("LMQ_AUTH__OPEN", "true")
    monkeypatch.setenv("LMQ_MQTT__LISTEN", '["[::1]:1", {"address": "h:2", "tls": {"certificate": "a.pem"}}]')
    plain, secure = load_settings(None, {}).mqtt.listen
    assert (plain.address, plain.tls) == ("[::1]:1", None)
    assert (secure.address, secure.tls.certificate) == ("h:2", Path("a.pem"))


def test_a_password_in_the_settings_is_told_what_to_do_instead(config):
    with pytest.raises(SettingsError, match="give password_hash, as lmq hash-password prints it, or password_env"):
        load_settings(config('[auth.users.bob]\npassword = "x"\n'), {})
    with pytest.raises(SettingsError, match=r"did you mean auth\.users\.bob\.may_publish\?"):
        load_settings(config("[auth.users.bob]\nmay_pub = true\n"), {})
