from __future__ import annotations

import tomllib

import pytest

from core.settings import RetentionSettings, StoreSettings
from gateway.settings.models import AuthSettings, GatewaySettings, MqttSettings, UserSettings
from gateway.settings.reading import load_settings
from gateway.settings.secret import HIDDEN
from gateway.settings.text import HIDDEN_HEAD, settings_text

ODD = 'a "quoted"\\\n\t\x7f name: \u00e9'
LISTEN = ["127.0.0.1:1883", {"address": "[::1]:8883", "tls": {"certificate": ODD, "client_ca": "ca.pem"}}]


def _settings():
    users = {
        "ann": UserSettings(password_hash="scrypt$1$2$3$AA$AA"),
        ODD: UserSettings(password_env=ODD, may_publish=False),
    }
    return GatewaySettings(
        data_dir=ODD,
        mqtt=MqttSettings(connections_max=7, listen=LISTEN),
        store=StoreSettings(retention=RetentionSettings(bytes_max=1 << 30)),
        auth=AuthSettings(users=users),
    )


@pytest.mark.parametrize("settings", [GatewaySettings(), _settings()], ids=["defaults", "others"])
def test_text_loads_back(tmp_path, settings):
    path = tmp_path / "lmq.toml"
    path.write_text(settings_text(settings, with_secrets=True))
    assert load_settings(path, {}) == settings


def test_secrets_are_hidden_and_all_else_is_shown():
    text = settings_text(_settings())
    assert text.startswith(HIDDEN_HEAD)
    assert "scrypt" not in text
    shown = tomllib.loads(text)
    assert shown["auth"]["users"]["ann"]["password_hash"] == HIDDEN
    assert shown["auth"]["users"][ODD]["password_hash"] == ""  # there is nothing to hide
    assert shown["mqtt"]["connections_max"] == 7


def test_what_is_not_set_stands_in_a_comment():
    assert "# bytes_max is not set" in settings_text(GatewaySettings()).splitlines()
