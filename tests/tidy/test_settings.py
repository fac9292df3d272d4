"""No setting is read and ignored."""

from __future__ import annotations

import re

from gateway.settings.backends import KINDS as BACKEND_KINDS
from gateway.settings.bridges import BridgeSettings, BridgeTlsSettings, BridgeTopicSettings
from gateway.settings.listen import CertificateSettings, MqttListenSettings, TlsSettings
from gateway.settings.models import GatewaySettings, UserSettings, walk_settings
from gateway.settings.secret import is_secret
from tests.support.sources import PRODUCT_SOURCES, ROOT

ABOUT = (
    "core/settings.py",
    "gateway/settings/backends.py",
    "gateway/settings/bridges.py",
    "gateway/settings/changes.py",
    "gateway/settings/jwt.py",
    "gateway/settings/listen.py",
    "gateway/settings/models.py",
)  # they name each setting, and use none
NAMES = [
    name
    for model in (
        GatewaySettings,
        UserSettings,
        MqttListenSettings,
        TlsSettings,
        CertificateSettings,
        BridgeSettings,
        BridgeTopicSettings,
        BridgeTlsSettings,
        *BACKEND_KINDS.values(),
    )
    for name, _ in walk_settings(model)
]
TEXT = "\n".join((ROOT / path).read_text() for path in PRODUCT_SOURCES if not path.endswith(ABOUT))


def test_each_setting_is_used_by_the_product():
    assert not [name for name in NAMES if not re.search(rf"\.{name.rpartition('.')[2]}\b", TEXT)]


def test_secrets_are_marked_so_that_nothing_shows_them():
    fields = {
        name: model.model_fields[name.rpartition(".")[2]]
        for kind in (GatewaySettings, UserSettings, *BACKEND_KINDS.values())
        for name, model in walk_settings(kind)
    }
    secret = {
        name for name in fields if re.search(r"(password|secret|token|hash)(_hash)?$|^headers$|^dsn$|^plugins$", name)
    }
    assert secret == {name for name, field in fields.items() if is_secret(field)}
