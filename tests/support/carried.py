"""Connections in memory over WebSocket and TLS: the gateway's layers, and another implementation as the client's."""

from __future__ import annotations

import functools
import ssl

from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, BytesMessage, CloseConnection, Request

from gateway.net.streams.stack import Stack
from gateway.net.streams.tls import TlsLayer
from gateway.net.streams.tls_context import make_context
from gateway.net.streams.websocket import WebSocketLayer
from tests.support import certificates
from tests.support.mqtt_door import MemoryTransport, Peer

TRANSPORTS = ("tcp", "ws", "tls")


class WebSocketClient:
    """A client's end of WebSocket; each `encode` is one frame."""

    def __init__(self):
        self.layers = [WebSocketLayer("/mqtt")]
        self.is_open = self.is_ended = False
        self._connection = WSConnection(ConnectionType.CLIENT)
        self._out = self._connection.send(Request(host="gateway", target="/mqtt", subprotocols=["mqtt"]))

    def encode(self, data):
        if data and not self.is_ended:  # after the close nothing can be said
            self._out += self._connection.send(BytesMessage(data=data))

    def take_out(self):
        out, self._out = self._out, b""
        return out

    def decode(self, data):
        parts = []
        self._connection.receive_data(data)
        for event in self._connection.events():
            if isinstance(event, BytesMessage):
                parts.append(bytes(event.data))
            elif isinstance(event, AcceptConnection):
                assert event.subprotocol == "mqtt"
                self.is_open = True
            else:
                assert isinstance(event, CloseConnection)
                self.is_ended = True
        return b"".join(parts)


@functools.cache
def _contexts():
    return make_context(certificates.make_files()), certificates.client_context()


class TlsClient:
    """A client's end of TLS."""

    def __init__(self):
        server, client = _contexts()
        self.layers = [TlsLayer(server)]
        self.is_open = self.is_ended = False
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = client.wrap_bio(self._incoming, self._outgoing, server_hostname="localhost")
        self.decode(b"")

    def encode(self, data):
        if data:
            self._object.write(data)

    def take_out(self):
        return self._outgoing.read()

    def decode(self, data):
        parts = []
        self._incoming.write(data)
        try:
            if not self.is_open:
                self._object.do_handshake()
                self.is_open = True
            while part := self._object.read(65_536):
                parts.append(part)
            self.is_ended = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.is_ended = True
        return b"".join(parts)


CLIENTS = {"ws": WebSocketClient, "tls": TlsClient}


class CarriedTransport(MemoryTransport):
    """What the door writes goes through the gateway's layers and the client's end; `sent` is what that makes of it."""

    def __init__(self, conn_id, client):
        super().__init__(conn_id)
        self.client = client
        self.stack = Stack(client.layers)
        while not client.is_open:
            assert self.take_in() == b""

    def take_in(self):
        """Return the bytes that the gateway's layers make of the client's; give the client the layers' own answers."""
        data = self.stack.receive_data(self.client.take_out())
        self.sent += self.client.decode(self.stack.data_to_send())
        return data

    def write(self, data):
        if not self.is_closed:
            self.sent += self.client.decode(bytes(self.stack.send(data)) + self.stack.data_to_send())

    def close(self):
        if not self.is_closed:
            self.stack.close()
            self.sent += self.client.decode(self.stack.data_to_send())
            assert self.client.is_ended
        super().close()


class CarriedPeer(Peer):
    """A client of the MQTT door that writes and reads through another stream."""

    def begin(self, *data):
        self.transport.client.encode(b"".join(data))
        super().begin(self.transport.take_in())


def dial_by(name, world):
    """Return a new connection to a world's door over TCP, WebSocket or TLS, without the sockets."""
    if name == "tcp":
        return world.dial()
    world.conn_id += 1
    transport = CarriedTransport(world.conn_id, CLIENTS[name]())
    return CarriedPeer(world, transport, world.door.connect(transport))
