"""An MQTT client on a blocking socket, which reads only when it is told to."""

from __future__ import annotations

import selectors
import socket
import time

from tests.support import mqtt

WAIT_S = 15


class MqttClient:
    """A connection that is accepted; used as a context manager."""

    def __init__(self, address, client_id, *, clean=False, keep_alive_s=60, will=None, **login):
        self.sock = socket.create_connection(address, timeout=WAIT_S)
        self.tail = b""
        self.sock.sendall(mqtt.connect(client_id, clean=clean, keep_alive_s=keep_alive_s, will=will, **login))
        (first,) = self.read(1)
        assert first[:2] == b"\x20\x02"
        assert first[3] == 0
        self.session_present = bool(first[2])

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.sock.close()

    def send(self, *packets):
        self.sock.sendall(b"".join(packets))

    def read(self, count_max=None, wait_s=WAIT_S):
        """Return whole packets that came: at least one, or none after `wait_s`, or on a connection that is lost."""
        until = time.monotonic() + wait_s
        with selectors.DefaultSelector() as selector:  # select() takes no descriptor above 1,023
            selector.register(self.sock, selectors.EVENT_READ)
            while time.monotonic() < until:
                packets, self.tail = split(self.tail, count_max)
                if packets:
                    return packets
                if selector.select(max(until - time.monotonic(), 0)):
                    data = self.sock.recv(1 << 16)
                    if not data:
                        return []
                    self.tail += data
        return []


def split(data, count_max=None):
    """Return the whole packets at the start of `data`, and the rest."""
    packets = []
    pos = 0
    while pos + 2 <= len(data) and (count_max is None or len(packets) < count_max):
        size, at, shift = 0, pos + 1, 0
        while at < len(data):
            size |= (data[at] & 0x7F) << shift
            shift += 7
            at += 1
            if data[at - 1] < 0x80:
                break
        else:
            break
        if at + size > len(data):
            break
        packets.append(data[pos : at + size])
        pos = at + size
    return packets, data[pos:]
