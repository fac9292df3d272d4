from __future__ import annotations

import contextlib
import ipaddress
import struct

import pytest
from hypothesis import given, strategies as st

from gateway.net.streams.layer import Peer, StreamError
from gateway.net.streams.proxy_header import SIGNATURE, ProxyHeader

TRUSTED = [ipaddress.ip_network("10.0.0.0/8"), ipaddress.ip_network("fd00::/8")]


def header():
    return ProxyHeader("10.1.2.3", TRUSTED)


def binary(command=0x21, family=0x11, body=None, *, more=b""):
    if body is None:
        body = ipaddress.ip_address("192.0.2.7").packed + ipaddress.ip_address("10.0.0.1").packed
        body += struct.pack(">HH", 40_000, 1883)
    body += more
    return SIGNATURE + bytes([command, family]) + len(body).to_bytes(2) + body


V6 = ipaddress.ip_address("2001:db8::7").packed + ipaddress.ip_address("fd00::1").packed + struct.pack(">HH", 1, 2)
TOLD = Peer(("192.0.2.7", 40_000), ("10.0.0.1", 1883))
TOLD_V6 = Peer(("2001:db8::7", 1), ("fd00::1", 2))


@pytest.mark.parametrize(
    ("sent", "peer"),
    [
        (b"PROXY TCP4 192.0.2.7 10.0.0.1 40000 1883\r\n", TOLD),
        (b"PROXY TCP6 2001:db8::7 fd00::1 1 2\r\n", TOLD_V6),
        (b"PROXY UNKNOWN\r\n", Peer()),
        (b"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n", Peer()),
        (binary(), TOLD),
        (binary(more=b"\x04\x00\x03abc"), TOLD),
        (binary(family=0x21, body=V6), TOLD_V6),
        (binary(command=0x20, family=0, body=b""), Peer()),
        (binary(family=0x31, body=bytes(216)), Peer()),
    ],
)
@pytest.mark.parametrize("size", [1, 5, 1 << 16])
def test_header_is_taken_off_however_it_is_cut(sent, peer, size):
    layer = header()
    data, got = sent + b"\x10\x0cMQTT", bytearray()
    for at in range(0, len(data), size):
        part = data[at : at + size]
        got += part if layer.is_done else layer.receive_data(part)
    assert got == b"\x10\x0cMQTT"
    assert layer.is_open
    assert layer.is_done
    assert layer.peer(Peer(name="x")) == peer._replace(name="x")
    assert layer.send(b"x") == b"x"


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"\x10\x0cMQTT", "missing"),
        (b"PROXY  TCP4 192.0.2.7 10.0.0.1 40000 1883\r\n", "malformed"),
        (b"PROXY TCP4 192.0.2.7 10.0.0.1 40000\r\n", "malformed"),
        (b"PROXY TCP4 192.0.2.7 10.0.0.1 40000 65536\r\n", "malformed"),
        (b"PROXY TCP4 192.0.2.7 10.0.0.1 -1 1883\r\n", "malformed"),
        (b"PROXY TCP4 192.0.2.700 10.0.0.1 1 1883\r\n", "malformed"),
        (b"PROXY TCP4 ::1 ::1 1 1883\r\n", "malformed"),
        (b"PROXY TCP5 192.0.2.7 10.0.0.1 1 1883\r\n", "malformed"),
        (b"PROXY \xff\r\n", "malformed"),
        (b"PROXY UNKNOWN " + bytes(200), "no end"),
        (binary(command=0x22), "malformed"),
        (binary(command=0x11), "malformed"),
        (binary(body=b"short"), "malformed"),
        (SIGNATURE + b"\x21\x11\xff\xff", "too long"),
        (SIGNATURE[:6] + b"x", "missing"),
    ],
)
def test_what_is_no_header_is_refused(sent, reason):
    with pytest.raises(StreamError, match=rf"proxy: the header (is|has) (.* )?{reason}"):
        header().receive_data(sent)


def test_only_trusted_proxies_are_heard():
    for host in ("10.0.0.1", "::ffff:10.9.9.9", "fd00::5"):
        ProxyHeader(host, TRUSTED)
    for host in ("192.0.2.1", "127.0.0.1", "::1", "", "?", "nonsense"):
        with pytest.raises(StreamError, match="not a trusted proxy"):
            ProxyHeader(host, TRUSTED)


@given(st.binary(max_size=300), st.sampled_from([b"", b"PROXY ", SIGNATURE, SIGNATURE + b"\x21\x11"]))
def test_any_bytes_are_taken_or_refused(data, start):
    layer = header()
    with contextlib.suppress(StreamError):
        if start + data:
            layer.receive_data(start + data)


def test_bytes_without_a_header_are_refused_by_what_they_are():
    with pytest.raises(StreamError, match="the header is missing, but MQTT"):
        ProxyHeader("10.0.0.1", TRUSTED).receive_data(b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00")
