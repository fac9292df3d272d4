"""The header in front of a stream that names the client a proxy connects for: PROXY protocol, versions 1 and 2.

Source: haproxy.org, proxy-protocol.txt.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Sequence

from gateway.net.streams.first_bytes import told_of
from gateway.net.streams.layer import Layer, Peer, StreamError

KIND = "proxy"
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
TEXT_START = b"PROXY "
TEXT_BYTES_MAX = 107  # with CR LF, of version 1
TEXT_FAMILIES = {"TCP4": 4, "TCP6": 6}
PORT_MAX = 65_535  # TCP has two bytes for it
SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"
HEAD = struct.Struct(">12sBBH")
BODY_BYTES_MAX = 4_096  # of version 2: addresses and what else proxies say
LOCAL, PROXY = 0x20, 0x21  # version 2 and the command
ADDRESSES = {0x11: struct.Struct(">4s4sHH"), 0x21: struct.Struct(">16s16sHH")}  # of TCP over IPv4 and IPv6


def is_trusted(host: str, networks: Sequence[Network]) -> bool:
    """Return whether a host may speak for others."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return any((mapped or address) in network for network in networks)


class ProxyHeader(Layer):
    """Takes the header off.

    Args:
        host: The address that connects.
        networks: Of the proxies that may speak for others; from elsewhere nothing is taken.

    Raises:
        StreamError: The host is nobody of them.
    """

    def __init__(self, host: str, networks: Sequence[Network]) -> None:
        if not is_trusted(host, networks):
            raise StreamError(KIND, "this address is not a trusted proxy")
        self._kept = b""
        self._peer = Peer()

    def receive_data(self, data: bytes) -> bytes:
        """Take the header; return what comes after it.

        Raises:
            StreamError: There is none, or it is malformed.
        """
        self._kept += data
        size = self._find_end()
        if size == 0:
            return b""
        header, rest = self._kept[:size], self._kept[size:]
        self._kept = b""
        self._peer = _parse_text(header) if header.startswith(TEXT_START) else _parse_binary(header)
        self.is_open = self.is_done = True
        return rest

    def _find_end(self) -> int:
        """Return the size of the header, 0 while it is not whole."""
        kept = self._kept
        if kept[: len(TEXT_START)] == TEXT_START[: len(kept)]:
            end = kept.find(b"\r\n", 0, TEXT_BYTES_MAX) + 2
            if end == 1 and len(kept) >= TEXT_BYTES_MAX:
                raise StreamError(KIND, "the header has no end")
            return end if end > 1 else 0
        if kept[: len(SIGNATURE)] != SIGNATURE[: len(kept)]:
            raise StreamError(KIND, f"the header is missing{told_of(kept)}")
        if len(kept) < HEAD.size:
            return 0
        size = HEAD.size + HEAD.unpack_from(kept)[3]
        if size > HEAD.size + BODY_BYTES_MAX:
            raise StreamError(KIND, "the header is too long")
        return size if len(kept) >= size else 0

    def send(self, data: bytes | bytearray | memoryview) -> bytes | bytearray | memoryview:
        """Return the same: only what comes has a header."""
        return data

    def peer(self, known: Peer) -> Peer:
        """Return the addresses that the proxy told, where it did."""
        return known._replace(address=self._peer.address, local_address=self._peer.local_address)


def _parse_text(header: bytes) -> Peer:
    """Return what version 1 says."""
    try:
        words = header[:-2].decode("ascii").split(" ")
        if words[1] == "UNKNOWN":
            return Peer()
        _, family, source, target, source_port, target_port = words
        version = TEXT_FAMILIES[family]
        hosts = [ipaddress.ip_address(host) for host in (source, target)]
        ports = [_port(text) for text in (source_port, target_port)]
    except (ValueError, KeyError, IndexError) as error:
        raise StreamError(KIND, "the header is malformed") from error
    if any(host.version != version for host in hosts):
        raise StreamError(KIND, "the header is malformed")
    return Peer((str(hosts[0]), ports[0]), (str(hosts[1]), ports[1]))


def _port(text: str) -> int:
    if not text.isdigit() or int(text) > PORT_MAX:
        raise ValueError(text)
    return int(text)


def _parse_binary(header: bytes) -> Peer:
    """Return what version 2 says; what it says beyond addresses is let go."""
    _, command, family, size = HEAD.unpack_from(header)
    if command == LOCAL:  # the proxy for itself: it looks whether we live
        return Peer()
    if command != PROXY:
        raise StreamError(KIND, "the header is malformed")
    layout = ADDRESSES.get(family)
    if layout is None:  # a kind that has no host and port
        return Peer()
    if size < layout.size:
        raise StreamError(KIND, "the header is malformed")
    source, target, source_port, target_port = layout.unpack_from(header, HEAD.size)
    hosts = [str(ipaddress.ip_address(packed)) for packed in (source, target)]
    return Peer((hosts[0], source_port), (hosts[1], target_port))
