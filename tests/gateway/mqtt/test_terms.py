from __future__ import annotations

import pytest

from gateway.mqtt.packets import Connect
from gateway.mqtt.properties import Properties, Property
from gateway.mqtt.session import NEVER
from gateway.mqtt.terms import connack_items, limit_expiry, make_terms, takes_connack
from gateway.settings.models import MqttSettings


def connect(level=5, *, is_clean=True, keep_alive_s=60, client_id=b"c", **numbers):
    properties = Properties({Property[name]: value for name, value in numbers.items()}, {})
    return Connect(level, client_id, is_clean, keep_alive_s, None, None, None, properties)


def test_older_versions_have_sessions_that_end_at_once_or_never():
    settings = MqttSettings()
    assert make_terms(connect(4, is_clean=True), settings).expiry_s == 0
    assert make_terms(connect(3, is_clean=False), settings).expiry_s == NEVER
    assert make_terms(connect(4, keep_alive_s=9), settings).keep_alive_s == 9


def test_expiry_is_what_was_asked_for_within_the_settings():
    assert limit_expiry(10, MqttSettings()) == 10
    assert limit_expiry(NEVER, MqttSettings()) == NEVER
    assert limit_expiry(NEVER, MqttSettings(session_expiry_s=7)) == 7
    assert make_terms(connect(SESSION_EXPIRY=3), MqttSettings(session_expiry_s=7)).expiry_s == 3


@pytest.mark.parametrize(("asked", "given"), [(0, 30), (29, 29), (31, 30)])
def test_keep_alive_is_within_the_settings(asked, given):
    assert make_terms(connect(keep_alive_s=asked), MqttSettings(keep_alive_max_s=30)).keep_alive_s == given


def test_client_is_told_what_it_did_not_ask_for():
    settings = MqttSettings(session_expiry_s=7, keep_alive_max_s=30)
    asked = connect(SESSION_EXPIRY=9, client_id=b"")
    told = dict(connack_items(asked, make_terms(asked, settings), b"made"))
    assert told[Property.SESSION_EXPIRY] == 7
    assert told[Property.SERVER_KEEP_ALIVE] == 30
    assert told[Property.ASSIGNED_CLIENT_ID] == b"made"
    asked = connect(SESSION_EXPIRY=5, keep_alive_s=20)
    assert not {Property.SESSION_EXPIRY, Property.SERVER_KEEP_ALIVE, Property.ASSIGNED_CLIENT_ID} & set(
        dict(connack_items(asked, make_terms(asked, settings), b"c"))
    )


def test_client_takes_its_connack_where_its_largest_packet_has_room_for_it():
    settings = MqttSettings()
    assert takes_connack(connect(4), b"c", settings)
    assert takes_connack(connect(), b"c", settings)
    assert [takes_connack(connect(PACKET_BYTES_MAX=size), b"c", settings) for size in (15, 16)] == [False, True]
    assert not takes_connack(connect(PACKET_BYTES_MAX=30, client_id=b""), b"lmq-0123456789abcdef", settings)
    proving = connect(PACKET_BYTES_MAX=100)
    proving.properties.texts[Property.AUTH_METHOD] = b"SCRAM-SHA-256"
    assert not takes_connack(proving, b"c", settings)
