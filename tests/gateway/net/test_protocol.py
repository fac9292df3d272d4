from __future__ import annotations

from gateway.net.protocol import ConnectionHandler, Transport
from gateway.net.transport import SocketTransport
from tests.support.connections import RecordingHandler


def _methods(kind):
    return {name for name, member in vars(kind).items() if callable(member) and not name.startswith("_")}


def test_socket_transport_has_all_that_a_front_may_use():
    assert _methods(Transport) <= _methods(SocketTransport)
    assert "local_address" in vars(SocketTransport)


def test_recording_handler_is_a_whole_handler():
    assert _methods(ConnectionHandler) <= _methods(RecordingHandler)
