"""A connection whose handler's bytes are carried by layers: TLS, WebSocket, a header in front."""

from __future__ import annotations

import logging
from typing import cast

from gateway.address import format_address, pack_host
from gateway.net.endpoint import Endpoint
from gateway.net.streams.layer import LayerFactory, Peer, StreamError
from gateway.net.streams.plain import GONE
from gateway.net.streams.stack import Stack
from gateway.net.transport import SocketTransport

LOGGER = logging.getLogger(__name__)

OPEN_MS = 10_000  # that a peer has for the handshakes; counted anew once it is admitted


class LayeredTransport(SocketTransport):
    """One connection, whose handler is made once its layers are open.

    What they decrypt or unpack counts to its share of a turn, as its handler's work does.

    Args:
        endpoint: The door's.
        make_layers: Makes the layers.
        is_proxied: A layer names the peer's own address; the limits of hosts are for that one, not for the proxy.
    """

    __slots__ = (
        "_is_connected",
        "_is_handler_left",
        "_is_proxied",
        "_is_taking",
        "_local_address",
        "_make_layers",
        "_open_until_ms",
        "_stack",
    )

    def __init__(self, endpoint: Endpoint, make_layers: LayerFactory, *, is_proxied: bool = False) -> None:
        super().__init__(endpoint)
        self._make_layers = make_layers
        self._is_proxied = is_proxied
        self._local_address: tuple[str, int] | None = None  # that a proxy was reached at
        self._stack: Stack | None = None  # while the layers change any byte
        self._open_until_ms = 0  # not 0: they are to be open by then
        self._is_connected = False  # there is or was a handler
        self._is_handler_left = False  # the handler has more to do with what it was given
        self._is_taking = False  # a read is being handled: the peer's end is told after it

    def _enter(self, host: str) -> bool:
        return SocketTransport._enter(self, "" if self._is_proxied else host)

    def _begin(self, host: str) -> None:
        if self._is_proxied and host == GONE:  # HAProxy's health checks reset the connection at once
            self.end_reason = "gone before it was looked at"
            self.abort()
            return
        self._set_deadline()
        try:
            seen_by_python = cast("SocketTransport", self)  # its methods as objects, which C does not give
            self._stack = Stack(self._make_layers(host), seen_by_python.is_share_over)
        except StreamError as error:
            self._refuse(error)
        self._endpoint.timer.watch(self)

    def _set_deadline(self) -> None:
        self._open_until_ms = self._endpoint.clock.now_ms() + OPEN_MS

    def admit(self) -> None:
        """Handle what was held; the peer has its time from now on."""
        if self._open_until_ms:
            self._set_deadline()
        SocketTransport.admit(self)

    def data_received(self, data: bytes) -> None:
        """Hand on what the bytes carry, the end of the stream too."""
        SocketTransport.data_received(self, data)
        if self._stack is not None and self._stack.is_ended:
            self._set_read()

    def _is_open(self) -> bool:
        return (self._stack is not None or self._handler is not None) and not self._close_until_ms

    def _take(self, data: bytes, now_ms: int) -> bool:
        """Give the handler what the socket's bytes carry; without any go on, the handler first."""
        stack = self._stack
        if stack is not None and (data or (stack.has_more and not self._is_handler_left)):
            data = self._unwrap(stack, data)
            self._is_handler_left = len(data) > 0 and self._give(data, now_ms)
        else:
            self._is_handler_left = self._give(data, now_ms)
        return self._is_handler_left or (stack is not None and stack.has_more)

    def _give(self, data: bytes, now_ms: int) -> bool:
        if self._handler is None:
            return False
        self._is_taking = True
        try:
            return SocketTransport._take(self, data, now_ms)
        finally:
            self._is_taking = False

    def request_turn(self) -> None:
        """Have the handler go on in a turn, before it is given more."""
        self._is_handler_left = True
        SocketTransport.request_turn(self)

    def _unwrap(self, stack: Stack, data: bytes) -> bytes:
        """Return what the socket's bytes carry; make the handler when the layers are open."""
        try:
            data = stack.receive_data(data)
        except StreamError as error:
            self._refuse(error)
            return b""
        self._send_said(stack)
        if stack.is_open and not self._is_connected:
            self._open_until_ms = 0
            if not self._note_peer(stack.peer):
                return b""
            self._is_connected = True
            if stack.is_done:
                self._stack = None
            self._connect()
        return data

    def _note_peer(self, peer: Peer) -> bool:
        """Take note of what the layers know of the peer; return whether it may stay."""
        self.peer_name = peer.name
        self.peer_client = peer.client
        self.peer_certificate = peer.certificate
        self._local_address = peer.local_address
        if self._is_proxied and peer.address is None:
            self.peer = f"via {self.peer}"  # not the proxy's own: the client behind it is not known
        if peer.address is not None:
            self.peer = format_address(*peer.address)
            self.peer_host = pack_host(*peer.address)
            self._counted_host = host = peer.address[0]
            self.shared = self._endpoint.paces.find(host)
            reason = "" if self.refusal else self._endpoint.find_host_refusal(host, self.peer)
            if reason:
                self._counted_host = ""
                if self._endpoint.may_tell():
                    self._endpoint.limits.release("")
                    self.refusal = reason
                    return True
                self.end_reason = "too many of its host"
                self.abort()
                return False
        return True

    @property
    def local_address(self) -> tuple[str, int]:
        """The host and port that the peer reached us at, or the proxy in front."""
        return self._local_address or SocketTransport.local_address.__get__(self)

    def _send_said(self, stack: Stack) -> None:
        """Send what the layers themselves have to say."""
        said = stack.data_to_send()
        if said:
            SocketTransport.write(self, said)

    def _refuse(self, error: StreamError) -> None:
        """End a connection that does not carry what it should; the peer is told so as its protocol has it."""
        self._open_until_ms = 0
        if not self._is_connected:
            self._endpoint.note_refused(self.peer, error.kind, str(error))
        self.end_reason = str(error)
        self.finish()

    def _set_read(self) -> None:
        """Have the loop read the socket or not; tell the handler of the peer's end, once it has all before it."""
        SocketTransport._set_read(self)
        if self._stack is None or not self._stack.is_ended or self._is_taking or self._is_ending():
            return
        if self._is_read:
            self.eof_received()

    def eof_received(self) -> bool:
        """Tell the handler, once: the layers may have told of the end before the socket does."""
        if self._handler is None or not self._end_until_ms:
            return SocketTransport.eof_received(self)
        return self._close_until_ms == 0

    def _tell_lost(self, reason: str) -> None:
        self._stack = None
        self._open_until_ms = 0
        if not self._is_connected and not self.end_reason:
            self._endpoint.events.churn.note_connection(self.door, self.peer, "gone before its handshake was over")
        if self._is_connected or not self.end_reason:  # else it was said why it is refused
            SocketTransport._tell_lost(self, reason)

    def next_deadline_ms(self) -> int | None:
        """Return the handler's deadline or another that counts, at first that of the handshakes."""
        if self._open_until_ms and not self._held:
            return self._open_until_ms
        return SocketTransport.next_deadline_ms(self)

    def on_deadline(self, now_ms: int) -> None:
        """Run the handler's timer, or end what takes too long."""
        if self._open_until_ms:
            self._refuse(StreamError("handshake", "it takes too long"))
            self.abort()
        else:
            SocketTransport.on_deadline(self, now_ms)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send what carries `data`."""
        stack = self._stack
        if stack is None:
            SocketTransport.write(self, data)
        elif not self._close_until_ms:
            try:
                data = stack.send(data)
            except StreamError as error:
                self._refuse(error)
            else:
                SocketTransport.write(self, data)

    def _say_end(self) -> None:
        if self._stack is not None:
            self._stack.close()
            self._send_said(self._stack)
