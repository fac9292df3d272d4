from __future__ import annotations

from ipaddress import ip_network

import pytest

from gateway.address import (
    UNKNOWN_HOST,
    check_url,
    format_address,
    is_loopback,
    is_within,
    pack_host,
    pack_network,
    parse_address,
    unpack_host,
)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:1883", ("127.0.0.1", 1883)),
        ("[::1]:0", ("::1", 0)),
        ("::1:9876", ("::1", 9876)),
        (":5672", ("", 5672)),
        ("h:65535", ("h", 65535)),
    ],
)
def test_addresses_are_host_and_port(text, address):
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["", "1883", "off", ":", "host:", "host:x", "host:-1", "host:65536", "host:\u0661"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ValueError, match=r"HOST:PORT|the port is at most 65535, and not 65536"):
        parse_address(text)


def test_ipv6_hosts_are_written_in_brackets():
    assert format_address("::1", 1883) == "[::1]:1883"
    assert format_address("127.0.0.1", 1883) == "127.0.0.1:1883"


@pytest.mark.parametrize(
    ("host", "packed"),
    [
        ("127.0.0.1", b"\x7f\x00\x00\x01\x00\x00\x07\x5b"),
        ("::1", bytes(15) + b"\x01\x00\x00\x07\x5b"),
        ("fe80::1%lo", b"\xfe\x80" + bytes(13) + b"\x01\x00\x00\x07\x5b"),
        ("nonsense", UNKNOWN_HOST),
    ],
)
def test_hosts_are_packed_as_a_record_stores_them(host, packed):
    assert pack_host(host, 1883) == packed
    assert unpack_host(packed) == ("" if packed == UNKNOWN_HOST else format_address(host.partition("%")[0], 1883))


@pytest.mark.parametrize(
    ("peer", "is_here"),
    [
        ("127.0.0.1:1", True),
        ("127.8.8.8:1", True),
        ("[::1]:1", True),
        ("[::ffff:127.0.0.1]:1", True),
        ("10.0.0.1:1", False),
        ("", False),
        ("host:1", False),
        ("unix:0", True),
        ("via 127.0.0.1:1", False),  # a proxy that does not tell its client's address
        ("?:0", False),
    ],
)
def test_loopback_peers_are_known(peer, is_here):
    assert is_loopback(peer) is is_here


@pytest.mark.parametrize("url", ["http://x", "https://x:8443/a?b=c", "http://[::1]:80/", "http://127.0.0.1/"])
def test_url_is_an_address_of_http(url):
    assert check_url(url) == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "x",
        "ftp://x",
        "http://",
        "http://[x",
        "http://x:0",
        "http://x y",
        "http://\u00fc",
        "http://a:b@x",
        "http://a@x",
    ],
)
def test_url_that_is_no_address_of_http_is_refused(url):
    with pytest.raises(ValueError, match=r"must be an address|has a user name"):
        check_url(url)


@pytest.mark.parametrize(
    ("host", "same", "other"),
    [
        ("192.0.2.1", "::ffff:192.0.2.1", "192.0.2.2"),
        ("[2001:db8:1:2::1]", "2001:db8:1:2:ffff::9", "2001:db8:1:3::1"),
        ("fe80::1%eth0", "fe80::2", "fe81::1"),
        ("no address", "no address", "another"),
    ],
)
def test_what_counts_as_one_address(host, same, other):
    assert pack_network(host) == pack_network(same) != pack_network(other)


def test_hosts_of_networks():
    networks = [ip_network(text) for text in ("10.0.0.0/8", "2001:db8::/32")]
    hosts = ("10.1.2.3", "::ffff:10.0.0.1", "[2001:db8::1]", "11.0.0.1", "fe80::1%eth0", "no address", "")
    assert [is_within(host, networks) for host in hosts] == [True, True, True, False, False, False, False]
