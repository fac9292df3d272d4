from __future__ import annotations

import tomllib

import pytest
from pydantic import ValidationError

from gateway.settings.models import GatewaySettings, MqttSettings, SettingsError, walk_settings
from gateway.settings.reading import check_settings


def test_a_door_that_would_take_more_than_the_store_is_refused():
    with pytest.raises(SettingsError) as caught:
        check_settings({"amqp": {"body_bytes_max": 20_000_000}}, "test")
    said = "wrong settings: amqp.body_bytes_max (20000000) is more than store.message_bytes_max (16777216)"
    assert str(caught.value) == said
    flags = {"amqp": {"body_bytes_max": 20_000_000}, "store": {"message_bytes_max": 20_000_000}}
    assert check_settings(flags, "test").amqp.body_bytes_max == 20_000_000


def test_settings_cannot_be_changed():
    with pytest.raises(ValueError, match="frozen"):
        GatewaySettings().mqtt.listen = "off"


def test_every_setting_has_a_dotted_name():
    names = [name for name, _ in walk_settings(GatewaySettings)]
    assert {"data_dir", "store.flush.mode", "mqtt.listen", "auth.users"} <= set(names)
    assert len(names) == len(set(names))


@pytest.mark.parametrize("prefix", ["a/", "/a", "$a", "a/+", "#", "a\nb", "x" * 1_025])
def test_prefix_of_answers_is_a_topic(prefix):
    with pytest.raises(ValidationError):
        MqttSettings(response_prefix=prefix)
    assert MqttSettings(response_prefix="a/b").response_prefix == "a/b"


@pytest.mark.parametrize(
    ("text", "setting"),
    [
        ('[mqtt]\nlisten = "0.0.0.0:1883"\n', "auth.mqtt_anonymous"),
        ('[mqtt]\nlisten = ["127.0.0.1:1883", "[::]:1884"]\n', "auth.mqtt_anonymous"),
        ('[mqtt]\nlisten = "gateway.example:1883"\n', "auth.mqtt_anonymous"),
        ('[mqtt]\nlisten = [{ address = "10.0.0.1:8883", tls = { certificate = "a.pem" } }]\n', "auth.mqtt_anonymous"),
        ('[rocketmq]\nbroker = "0.0.0.0:10911"\n', "auth.rocketmq_anonymous"),
    ],
)
def test_nobody_lets_everybody_in_from_elsewhere_by_mistake(text, setting):
    with pytest.raises(SettingsError, match=setting) as caught:
        check_settings(tomllib.loads(text), "test")
    assert "auth.open = true" in str(caught.value)
    for meant in ("open = true", 'default = "deny"', f"{setting.removeprefix('auth.')} = false"):
        assert check_settings(tomllib.loads(f"{text}[auth]\n{meant}\n"), "test")


@pytest.mark.parametrize(
    "listen",
    [
        '"localhost:1883"',
        '"127.0.0.2:1883"',
        '"[::1]:1883"',
        '"unix:/run/lmq.sock"',
        '"off"',
        '[{ address = "0.0.0.0:8883", tls = { certificate = "a.pem", client_ca = "b.pem" } }]',
    ],
)
def test_who_is_here_or_has_a_certificate_may_come_in(listen):
    assert check_settings(tomllib.loads(f"[mqtt]\nlisten = {listen}\n"), "test")
