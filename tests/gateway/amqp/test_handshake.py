from __future__ import annotations

import pytest
from pamqp.commands import Connection

from gateway.amqp.errors import AmqpError
from gateway.amqp.handshake import ConnectionLimits, Login, agreed_frame_max, not_amqp, start_method
from gateway.amqp.methods import decode_method, encode_method
from gateway.amqp.offer import limits_of
from gateway.settings.models import AmqpSettings
from tests.support import amqp

LIMITS = ConnectionLimits(
    frame_max=131_072, channel_max=100, heartbeat_s=60, body_bytes_max=1, handshake_ms=1, product="p"
)


def offer(**changes):
    settings = AmqpSettings(product="Product")
    return limits_of(settings, 1_000, **changes)


def start_ok(said, mechanism, response):
    """Return the method as it is read off the wire."""
    return decode_method(amqp.method(0, Connection.StartOk(said, mechanism, response, "en_US"))[7:-1])


def test_the_server_says_what_it_can():
    ((_, start),) = amqp.decode_frames(encode_method(start_method(offer(), "1.2"), 0))
    capabilities = start.server_properties["capabilities"]
    assert (start.server_properties["product"], start.server_properties["version"]) == ("Product", "1.2")
    for name in (
        "publisher_confirms",
        "basic.nack",
        "consumer_cancel_notify",
        "per_consumer_qos",
        "connection.blocked",
    ):
        assert capabilities[name] is True
    assert start.mechanisms == "PLAIN AMQPLAIN"


def test_a_client_whose_certificate_says_who_it_is_is_offered_to_say_nothing():
    ((_, start),) = amqp.decode_frames(encode_method(start_method(offer(is_certified=True), "1.2"), 0))
    assert start.mechanisms == "EXTERNAL PLAIN AMQPLAIN"
    login = Login(start_ok({"connection_name": "billing"}, "EXTERNAL", ""), ("EXTERNAL",))
    assert (login.user, login.password, login.client) == ("", b"", "billing")


def test_plain_credentials_are_read():
    login = Login(start_ok({"connection_name": "billing"}, "PLAIN", "\0joe\0pass word"))
    assert (login.user, login.password, login.client) == ("joe", b"pass word", "billing")


@pytest.mark.parametrize(
    ("mechanism", "response", "text"),
    [
        ("PLAIN", "joe", "malformed PLAIN response"),
        ("PLAIN", "\0joe", "malformed PLAIN response"),
        ("AMQPLAIN", "\x05LOGINS\0\0\0\x09joe", "malformed AMQPLAIN response"),
        ("AMQPLAIN", "", "malformed AMQPLAIN response"),
        ("EXTERNAL", "", "unknown authentication mechanism 'EXTERNAL'"),
    ],
)
def test_other_credentials_are_refused(mechanism, response, text):
    with pytest.raises(AmqpError, match=text):
        Login(start_ok({}, mechanism, response))


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ({"capabilities": "odd"}, set()),
        ({"capabilities": {"a": True, "basic.nack": 1}}, set()),
        ({"capabilities": {"basic.nack": True, "connection.blocked": False}}, {"basic.nack"}),
        ({"capabilities": {f"n{i}": True for i in range(300)}}, set()),
        ({}, set()),
    ],
)
def test_capabilities_may_be_anything_and_those_that_are_known_are_kept(said, kept):
    assert Login(start_ok(said, "PLAIN", "\0a\0b")).capabilities == kept


@pytest.mark.parametrize(("asked", "agreed"), [(0, 131_072), (4_096, 4_096), (131_072, 131_072)])
def test_frame_max_is_the_clients_within_bounds(asked, agreed):
    assert agreed_frame_max(Connection.TuneOk(0, asked, 0), LIMITS) == agreed


@pytest.mark.parametrize(
    ("channels", "frame_max", "text"),
    [
        (0, 4_095, r"frame_max = 4095 is lower than the minimum allowed value \(4096\)"),
        (0, 200_000, r"frame_max = 200000 is higher than the maximum allowed value \(131072\)"),
        (101, 0, r"channel_max = 101 is higher than the maximum allowed value \(100\)"),
    ],
)
def test_what_is_out_of_bounds_is_not_allowed(channels, frame_max, text):
    with pytest.raises(AmqpError, match=text):
        agreed_frame_max(Connection.TuneOk(channels, frame_max, 0), LIMITS)


def test_what_is_not_amqp_is_told_by_what_it_is():
    assert not_amqp(b"GET / HTTP/1.1\r\n") == "not AMQP 0-9-1, but HTTP"
    assert not_amqp(b"AMQP\x03\x01\x00\x00") == "not AMQP 0-9-1, but AMQP 1.0"
    assert not_amqp(b"AMQP\x01\x01\x08\x00") == "not AMQP 0-9-1, but another version of it"
    assert not_amqp(b"\x00") == "not AMQP 0-9-1"
