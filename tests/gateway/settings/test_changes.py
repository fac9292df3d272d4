from __future__ import annotations

import pytest

from core.settings import FlushSettings, RetentionSettings, StoreSettings
from gateway.settings.changes import (
    AT_ONCE,
    NEXT_START,
    TAKES_EFFECT,
    Change,
    find_changes,
    settings_in_force,
    takes_effect,
)
from gateway.settings.models import (
    AmqpSettings,
    AuthSettings,
    GatewaySettings,
    MqttSettings,
    SettingsError,
    UserSettings,
    walk_settings,
)
from gateway.settings.secret import HIDDEN


def test_every_setting_says_from_when_on_another_value_counts():
    assert [name for name, _ in walk_settings(GatewaySettings)] == list(TAKES_EFFECT)


def test_what_is_the_same_is_no_change():
    assert find_changes(GatewaySettings(), GatewaySettings()) == []


def test_each_value_that_differs_is_a_change_of_its_own():
    after = GatewaySettings(
        mqtt=MqttSettings(listen="off", connections_max=7),
        store=StoreSettings(retention=RetentionSettings(bytes_max=1 << 30)),
    )
    assert find_changes(GatewaySettings(), after) == [
        Change("mqtt.connections_max", 0, 7, AT_ONCE),
        Change("mqtt.listen", "127.0.0.1:1883", "off", NEXT_START),
        Change("store.retention.bytes_max", "none", 1 << 30, AT_ONCE),
    ]


def test_lists_of_addresses_are_shown_in_one_line():
    tls = {"certificate": "a.pem"}
    listen = ["h:1", {"address": "h:2", "tls": tls}]
    before = GatewaySettings(auth=AuthSettings(open=True))
    after = before.model_copy(update={"mqtt": MqttSettings(listen=listen)})
    (change,) = find_changes(before, after)
    assert change == Change("mqtt.listen", "127.0.0.1:1883", "h:1, h:2 (tls certificate=a.pem)", NEXT_START)
    assert settings_in_force(after, after) == after


def test_users_come_and_go_and_their_hashes_are_not_shown():
    before = GatewaySettings(auth=AuthSettings(users={"ann": UserSettings(password_hash="a"), "bob": UserSettings()}))
    ann = UserSettings(password_hash="b", may_publish=False)
    after = GatewaySettings(auth=AuthSettings(users={"ann": ann, "cy": UserSettings(password_env="CY")}))
    found = {change.name: (change.before, change.after) for change in find_changes(before, after)}
    assert found["auth.users.ann.password_hash"] == (HIDDEN, HIDDEN)
    assert found["auth.users.ann.may_publish"] == (True, False)
    assert found["auth.users.bob.may_publish"] == (True, "none")
    assert found["auth.users.cy.password_env"] == ("none", "CY")
    assert takes_effect("auth.users.cy.password_env") == AT_ONCE


def test_what_takes_effect_at_the_next_start_stays_in_force_till_then():
    before = GatewaySettings()
    after = GatewaySettings(
        data_dir="elsewhere",
        mqtt=MqttSettings(listen="off", connections_max=7),
        store=StoreSettings(flush=FlushSettings(mode="async", interval_ms=7)),
    )
    found = settings_in_force(before, after)
    assert (found.data_dir, found.mqtt.listen, found.store.flush.mode) == (before.data_dir, "127.0.0.1:1883", "sync")
    assert (found.mqtt.connections_max, found.store.flush.interval_ms) == (7, 7)
    assert {change.name for change in find_changes(found, after)} == {"data_dir", "mqtt.listen", "store.flush.mode"}


def test_limit_that_fits_after_the_next_start_only_is_refused():
    size = 32 << 20
    after = GatewaySettings(amqp=AmqpSettings(body_bytes_max=size), store=StoreSettings(message_bytes_max=size))
    with pytest.raises(SettingsError, match=r"amqp\.body_bytes_max .* is more than store\.message_bytes_max"):
        settings_in_force(GatewaySettings(), after)
