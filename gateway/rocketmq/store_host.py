"""The address that records are stamped with: message ids carry it, and clients ask there for the message of an id.

Source: docs/protocols/rocketmq.md, "Routes".
"""

from __future__ import annotations

import ipaddress
import socket

IPV6_HOST_BYTES = 20  # address 16, port 4
MAPPED_PREFIX = bytes(10) + b"\xff\xff"  # an IPv4 address in IPv6's form
ANY_HOSTS = frozenset(("", "0.0.0.0", "::"))  # noqa: S104 - what others listen on, to be told from an address
SOMEWHERE = ("192.0.2.1", 9)  # an address of the documentation's: nothing is sent there
LOOPBACK = "127.0.0.1"
DEFAULT_ADDRESS = LOOPBACK, 10_911  # where neither the broker nor the name server listens


def plain_host(host: bytes) -> bytes:
    """Return an address and port, an IPv4 address in IPv6's form as the four bytes that every client can read."""
    return host[12:] if len(host) == IPV6_HOST_BYTES and host.startswith(MAPPED_PREFIX) else host


def pack_address(host: str, port: int) -> bytes:
    """Return an address and port as records and message ids carry them.

    Raises:
        ValueError: `host` is no address.
    """
    return plain_host(ipaddress.ip_address(host).packed + port.to_bytes(4, "big"))


def find_host(host: str) -> str | None:
    """Return the address of `host`: a name is looked up, and a socket on all addresses has this machine's first one.

    Returns:
        None where the name is not known.
    """
    if host in ANY_HOSTS:
        return _own_host()
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return None
    hosts = [str(address[0]) for _, _, _, _, address in found]
    return next((host for host in hosts if ":" not in host), hosts[0])  # some clients read no other


def _own_host() -> str:
    """Return the address that this machine has towards others, or the loopback where it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(SOMEWHERE)
        except OSError:
            return LOOPBACK
        return str(probe.getsockname()[0])
