"""Chapter 6: MQTT over WebSocket."""

from __future__ import annotations

import pytest
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, BytesMessage, Request, TextMessage

from gateway.net.streams.layer import StreamError
from gateway.net.streams.stack import Stack
from gateway.net.streams.websocket import WebSocketLayer
from tests.conformance.mqtt.clauses import keeps
from tests.conformance.mqtt.sides import parse
from tests.support import mqtt


class Browser:
    """A client of the door behind WebSocket, by another implementation of it."""

    def __init__(self, side, subprotocols=("mqtt",)):
        self.level = side.level
        self.peer = side.dial()
        self.stack = Stack([WebSocketLayer("/mqtt")])
        self.client = WSConnection(ConnectionType.CLIENT)
        request = Request(host="gateway", target="/mqtt", subprotocols=list(subprotocols))
        self.events = self.exchange(self.client.send(request))

    def exchange(self, sent):
        """Send bytes; return the events that come back, and let the door have what was in them."""
        data = self.stack.receive_data(sent)
        if data:
            self.peer.send(data)
        said = bytes(self.peer.transport.sent)
        self.peer.transport.sent.clear()
        back = self.stack.send(said) if said else b""
        self.client.receive_data(self.stack.data_to_send() + bytes(back or b"") + self.stack.data_to_send())
        return list(self.client.events())

    def send(self, *frames):
        """Send binary frames in one go; return the packets that came back, each frame of which must be binary."""
        events = self.exchange(b"".join(self.client.send(BytesMessage(data=data)) for data in frames))
        assert all(isinstance(event, BytesMessage) for event in events)
        return [parse(data, self.level).kind for data in mqtt.cut(b"".join(bytes(event.data) for event in events))]


@keeps(v3="6.0.0-1", v5="6.0.0-1")
def test_packets_come_in_binary_frames_and_other_data_ends_the_connection(side):
    browser = Browser(side)
    assert browser.send(side.connect()) == ["CONNACK"]
    assert browser.send(mqtt.PINGREQ) == ["PINGRESP"]
    with pytest.raises(StreamError):  # which closes the socket
        browser.exchange(browser.client.send(TextMessage(data="\x30")))


@keeps(v3="6.0.0-2", v5="6.0.0-2")
def test_packets_need_not_begin_or_end_where_frames_do(side):
    data = side.connect() + side.subscribe(1, (b"t", 1)) + mqtt.PINGREQ
    whole = ["CONNACK", "SUBACK", "PINGRESP"]
    assert sorted(Browser(side).send(data)) == sorted(whole)
    browser = Browser(side)
    assert sorted(browser.send(*[data[i : i + 1] for i in range(len(data))])) == sorted(whole)
    browser = Browser(side)
    assert browser.send(data[:5]) == []
    assert sorted(browser.send(data[5:20], data[20:])) == sorted(whole)


@keeps(v3="6.0.0-4", v5="6.0.0-4")
def test_subprotocol_is_mqtt(side):
    for offered in (["mqtt"], ["chat", "mqtt"], ["mqtt", "chat"]):
        (accepted,) = Browser(side, offered).events
        assert isinstance(accepted, AcceptConnection)
        assert accepted.subprotocol == "mqtt"
