from __future__ import annotations

import pytest
from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage

from tests.benchmarks.scenarios.websocket_client import frame, unframe


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536])
def test_frames_are_what_a_server_takes_and_sends(size):
    body = bytes(number % 251 for number in range(size))
    server = Connection(ConnectionType.SERVER)
    server.receive_data(frame(body))
    assert b"".join(bytes(event.data) for event in server.events()) == body
    sent = server.send(BytesMessage(body)) + server.send(BytesMessage(b"more"))
    assert unframe(sent) == (body + b"more", b"")
    assert unframe(sent[:-1]) == (body, sent[-6:-1])
