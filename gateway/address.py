"""Network addresses: as text `HOST:PORT`, an IPv6 host in brackets, and as the bytes that a record stores."""

from __future__ import annotations

import ipaddress
import socket
import struct
from collections.abc import Iterable
from urllib.parse import urlsplit

PORT_MAX = 65_535  # TCP has two bytes for it
UNIX = "unix:"  # in front of a path, in place of HOST:PORT
UNIX_MODE = 0o666  # of its file: to connect one must be able to write, and the folder says who may
UNIX_HOST = "unix"  # stands for the host of a client at a Unix socket
UNKNOWN_HOST = b"\x00" * 8


class PortError(ValueError):
    """A port that there cannot be; the text says so."""


def parse_address(text: str) -> tuple[str, int]:
    """Return host and port of `HOST:PORT` or `[HOST]:PORT`; all before the last colon is the host.

    Raises:
        PortError: The port is more than 65535.
        ValueError: The text is neither.
    """
    host, separator, port = text.rpartition(":")
    if not separator or not port.isascii() or not port.isdigit():
        raise ValueError(f"{text!r} is not HOST:PORT")
    if len(port) > len(str(PORT_MAX)) or int(port) > PORT_MAX:
        raise PortError(f"the port is at most {PORT_MAX}, and not {port}")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    return host, int(port)


def format_address(host: str, port: int) -> str:
    """Return `HOST:PORT`, an IPv6 host in brackets, or `unix:PATH` as it is."""
    if host.startswith(UNIX):
        return host
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def check_host(host: str) -> str:
    """Return a host's name or address that stands alone, or nothing.

    Raises:
        ValueError: There is a port with it, or it is none.
    """
    if host.count(":") == 1 or any(letter.isspace() or letter in "/[]" for letter in host):
        raise ValueError("must be a host's name or address alone, without a port")
    return host


def check_url(url: str) -> str:
    """Return an address of HTTP.

    Raises:
        ValueError: It is none, or there is a password in it.
    """
    try:
        parts = urlsplit(url)
        is_whole = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError as error:
        raise ValueError(f"must be an address, such as http://127.0.0.1:8000/auth/user: {error}") from error
    if not is_whole or not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError("must be an address, such as http://127.0.0.1:8000/auth/user")
    if parts.username is not None or parts.password is not None:
        raise ValueError("has a user name in it: leave names and passwords out")
    return url


def leads_here(url: str) -> bool:
    """Return whether an address of a server is on this machine, by what it is called; no name is looked up."""
    host = urlsplit(url).hostname or ""
    return host == "localhost" or (host != UNIX_HOST and is_loopback(f"{host}:0"))


def pack_host(host: str, port: int) -> bytes:
    """Return the address (4 or 16 bytes) and the port (4 bytes) as a record stores them; zeros if it is no address."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.inet_pton(family, host.partition("%")[0]) + struct.pack(">I", port)
    except OSError:
        return UNKNOWN_HOST


def unpack_host(packed: bytes) -> str:
    """Return `HOST:PORT` of what `pack_host` made, empty where that was no address."""
    if packed == UNKNOWN_HOST or len(packed) not in {8, 20}:
        return ""
    return format_address(str(ipaddress.ip_address(packed[:-4])), int.from_bytes(packed[-4:]))


def is_loopback(peer: str) -> bool:
    """Return whether `peer` (`HOST:PORT`, or `unix:0` by a Unix socket) is on this machine."""
    host = peer.rpartition(":")[0].strip("[]").partition("%")[0]
    if host == UNIX_HOST:
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def pack_network(host: str) -> bytes:
    """Return what counts as one address: of IPv6 the first 64 bits, since one machine may have all of the rest."""
    if ":" not in host:  # IPv4 as the system spells it: so it is asked at each connection
        return host.encode()
    address = _find_ip(host)
    if address is None:
        return host.encode()
    is_4 = isinstance(address, ipaddress.IPv4Address)  # written as one of IPv6
    return str(address).encode() if is_4 else address.packed[:8].hex().encode()


def is_within(host: str, networks: Iterable[ipaddress.IPv4Network | ipaddress.IPv6Network]) -> bool:
    """Return whether a host is of one of these networks."""
    address = _find_ip(host)
    return address is not None and any(address in network for network in networks if network.version == address.version)


def _find_ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
