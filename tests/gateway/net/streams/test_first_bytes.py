from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from gateway.net.streams.first_bytes import name_protocol, told_of


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"\x16\x03\x01\x02\x00\x01", "TLS"),
        (b"\x10\x0e\x00\x04MQTT\x04", "MQTT"),
        (b"\x10\x80\x01\x00\x06MQIsdp\x03", "MQTT"),
        (b"AMQP\x00\x00\x09\x01", "AMQP"),
        (b"AMQP\x03\x01\x00\x00", "AMQP 1.0"),
        (b"AMQP\x00\x01\x00\x00", "AMQP 1.0"),
        (b"GET /mqtt HTTP/1.1\r\n", "HTTP"),
        (b"PRI * HTTP/2.0\r\n\r\nSM", "HTTP/2"),
        (b"PROXY TCP4 ", "a PROXY header"),
        (b"\r\n\r\n\x00\r\nQUIT\n\x21", "a PROXY header"),
        (b"SSH-2.0-x", "SSH"),
        (b'\x00\x00\x00\x40\x00\x00\x00\x20{"code":105', "RocketMQ"),
        (b"\x00\x00\x00\x40\x01\x00\x00\x20\x00", "RocketMQ"),
        (b"", ""),
        (b"\x10\x0e\x00\x04XXXX", ""),
        (b"\x00" * 20, ""),
    ],
)
def test_protocols_are_known_by_their_first_bytes(data, name):
    assert name_protocol(data) == name
    assert told_of(data) == (f", but {name}" if name else "")
    assert told_of(data, name) == ""  # a door does not say that its own came


@given(st.binary(max_size=64))
def test_any_bytes_have_a_name_or_none(data):
    assert isinstance(name_protocol(data), str)
