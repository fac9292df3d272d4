"""WebSocket without sockets: frames by hand, and wsproto's client."""

from __future__ import annotations

import contextlib
import tracemalloc

import pytest
from hypothesis import given, settings, strategies as st
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, BytesMessage, CloseConnection, Ping, Pong, RejectConnection, Request

from gateway.net.streams.layer import StreamError
from gateway.net.streams.stack import Stack
from gateway.net.streams.websocket import FRAMES_AT_A_TIME, WebSocketLayer

KEY = "dGhlIHNhbXBsZSBub25jZQ=="
ACCEPT = b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="  # of that key: RFC 6455, 1.3
MASK = b"\x11\x22\x33\x44"
CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10


def request(path="/mqtt", *, subprotocols="mqtt", method="GET", version="13", more=""):
    return (
        f"{method} {path} HTTP/1.1\r\nHost: gateway\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Key: {KEY}\r\nSec-WebSocket-Version: {version}\r\n"
        + (f"Sec-WebSocket-Protocol: {subprotocols}\r\n" if subprotocols else "")
        + f"{more}\r\n"
    ).encode()


def frame(opcode, payload=b"", *, fin=True, rsv=0, mask=MASK):
    size = len(payload)
    length = (
        bytes([size]) if size < 126 else b"\x7e" + size.to_bytes(2) if size < 65_536 else b"\x7f" + size.to_bytes(8)
    )
    head = bytes([fin << 7 | rsv << 4 | opcode, length[0] | (0x80 if mask else 0)]) + length[1:]
    if not mask:
        return head + payload
    return head + mask + bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))


def opened():
    layer = WebSocketLayer("/mqtt")
    assert layer.receive_data(request()) == b""
    layer.data_to_send()
    return layer


def test_a_client_that_asks_rightly_is_let_in():
    layer = WebSocketLayer("/mqtt")
    assert not layer.is_open
    assert layer.receive_data(request(subprotocols="chat, mqtt")) == b""
    assert layer.is_open
    said = layer.data_to_send()
    assert said.startswith(b"HTTP/1.1 101 ")
    assert ACCEPT in said
    assert b"sec-websocket-protocol: mqtt\r\n" in said.lower()
    assert layer.data_to_send() == b""


def test_compression_is_not_agreed_to():
    layer = WebSocketLayer("/mqtt")
    layer.receive_data(request(more="Sec-WebSocket-Extensions: permessage-deflate\r\n"))
    assert b"extensions" not in layer.data_to_send().lower()
    with pytest.raises(StreamError, match="websocket: reserved bit"):
        layer.receive_data(frame(BINARY, b"x", rsv=4))


def test_query_of_the_path_does_not_matter_and_clients_of_mqtt_3_1_have_their_own_name():
    layer = WebSocketLayer("/mqtt")
    layer.receive_data(request("/mqtt?token=1", subprotocols="mqttv3.1"))
    assert b"mqttv3.1" in layer.data_to_send()


@pytest.mark.parametrize("path", ["/", "/mqtt", "/ws/any?token=1"])
def test_any_path_will_do_where_none_is_named(path):
    layer = WebSocketLayer(None)
    layer.receive_data(request(path))
    assert layer.is_open
    assert layer.data_to_send().startswith(b"HTTP/1.1 101 ")


@pytest.mark.parametrize(
    ("sent", "status", "reason"),
    [
        (request("/other"), b"404", "no such path: '/other'"),
        (request(subprotocols=""), b"400", "the subprotocol mqtt is not offered"),
        (request(subprotocols="amqp"), b"400", "the subprotocol mqtt is not offered"),
        (request(version="8"), b"4", ""),
        (request(method="POST"), b"4", ""),
        (b"GET /mqtt HTTP/1.1\r\nHost: gateway\r\n\r\n", b"4", ""),
        (b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x00\x00\x00\r\n\r\n", b"4", "no HTTP, but MQTT"),
        (request().replace(b"\r\n", b"\n"), b"4", "lines of the request end without CR"),
        (b"GET /mqtt HTTP/1.1\r\nX: " + b"x" * 200_000, b"4", "bad http message"),
    ],
)
def test_who_asks_otherwise_is_told_by_http(sent, status, reason):
    layer = WebSocketLayer("/mqtt")
    with pytest.raises(StreamError, match=f"websocket: {reason}"):
        layer.receive_data(sent)
    head, _, body = layer.data_to_send().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 " + status)
    assert body.startswith(b"MQTT over WebSocket is spoken here: ")
    assert reason.encode() in body
    assert b"content-length: %d" % len(body) in head.lower()
    assert not layer.is_open


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_bytes_come_whatever_frames_they_are_in(size):
    sent = (
        request()
        + frame(BINARY, b"he", fin=False)
        + frame(PING, b"?")
        + frame(CONTINUATION, b"", fin=False)
        + frame(CONTINUATION, b"llo")
        + frame(BINARY)
        + frame(BINARY, b"x" * 300)
        + frame(PONG, b"unasked")
        + frame(BINARY, b"y" * 70_000)
    )
    stack, got, said = Stack([WebSocketLayer("/mqtt")]), bytearray(), bytearray()
    for at in range(0, len(sent), size):
        got += stack.receive_data(sent[at : at + size])
        said += stack.data_to_send()
    assert got == b"hello" + b"x" * 300 + b"y" * 70_000
    assert said.endswith(frame(PONG, b"?", mask=b""))


@pytest.mark.parametrize("size", [0, 125, 126, 65_535, 65_536])
def test_what_is_sent_is_one_binary_message(size):
    layer = opened()
    data = bytes(size)
    assert layer.send(memoryview(bytearray(data))) == frame(BINARY, data, mask=b"")


@pytest.mark.parametrize(
    ("sent", "code", "reason"),
    [
        (frame(TEXT, b"hello"), 1003, "a text message"),
        (frame(BINARY, b"x", mask=b""), 1002, "unmasked"),
        (frame(BINARY, b"x", rsv=1), 1002, "reserved bit"),
        (frame(3, b"x"), 1002, "invalid opcode"),
        (frame(CONTINUATION, b"x"), 1002, "unexpected continuation"),
        (frame(BINARY, b"x", fin=False) + frame(BINARY, b"x"), 1002, "expected continuation"),
        (frame(PING, b"x", fin=False), 1002, "fragment"),
        (frame(PING, b"x" * 126), 1002, "payload len"),
        (frame(TEXT, b"\xff"), 1007, "decode"),
        (frame(0xB), 1002, "invalid opcode"),
        (frame(PING, b"x", rsv=2), 1002, "reserved bit"),
        (frame(CLOSE, b"\x03\xe8", fin=False), 1002, "fragment"),
        (b"\x82\xfe\x00\x05" + MASK + bytes(5), 1002, "payload len"),
        (b"\x82\xff\x00\x00\x00\x00\x00\x00\xff\xff" + MASK, 1002, "payload len"),
        (b"\x82\xff" + b"\xff" * 8 + MASK, 1002, "payload len"),
    ],
)
def test_frames_that_break_the_rules_end_the_stream_with_a_code(sent, code, reason):
    layer = opened()
    with pytest.raises(StreamError, match=f"websocket: .*{reason}"):
        layer.receive_data(sent)
    assert layer.data_to_send()[-4:] == bytes([0x88, 2]) + code.to_bytes(2)


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        (b"\x03", 1002),
        (b"\x03\xe7", 1002),
        (b"\x03\xed", 1002),
        (b"\x0b\xb7", 1002),
        (b"\xff\xff", 1002),
        (b"\x03\xe8\xff", 1007),
    ],
)
def test_an_end_that_breaks_the_rules_is_answered_with_a_code(payload, code):
    layer = opened()
    with contextlib.suppress(StreamError):
        layer.receive_data(frame(CLOSE, payload))
    assert layer.data_to_send()[-4:] == bytes([0x88, 2]) + code.to_bytes(2)


def test_a_message_without_end_is_handed_on_as_it_comes_and_not_kept():
    layer = opened()
    assert layer.receive_data(b"\x02\xff" + (1 << 62).to_bytes(8) + bytes(4)) == b""
    tracemalloc.start()
    try:
        for _ in range(64):
            assert len(layer.receive_data(bytes(1 << 16))) == 1 << 16
        assert tracemalloc.get_traced_memory()[0] < 1 << 20
    finally:
        tracemalloc.stop()


def test_the_end_of_the_peer_is_answered_and_told_after_what_came_before():
    layer = opened()
    assert layer.receive_data(frame(BINARY, b"bye") + frame(CLOSE, b"\x03\xe8")) == b"bye"
    assert layer.is_ended
    assert layer.data_to_send()[:4] == b"\x88\x02\x03\xe8"
    layer.close()
    assert layer.data_to_send() == b""
    with pytest.raises(StreamError, match="closed by the peer"):
        layer.send(b"late")


def test_our_end_is_said_once_and_the_peers_answer_is_the_end():
    layer = opened()
    layer.close()
    layer.close()
    assert layer.data_to_send() == b"\x88\x02\x03\xe8"
    layer.receive_data(frame(CLOSE, b"\x03\xe8"))
    assert layer.is_ended
    assert layer.data_to_send() == b""


def test_nothing_is_said_before_a_client_asked():
    layer = WebSocketLayer("/mqtt")
    layer.close()
    assert layer.data_to_send() == b""


def test_many_small_frames_are_taken_in_turns():
    layer = opened()
    layer.is_over = lambda: True
    count = 10 * FRAMES_AT_A_TIME
    got = [layer.receive_data(frame(BINARY, b"x") * count)]
    while layer.has_more:
        got.append(layer.receive_data(b""))
    assert b"".join(got) == b"x" * count
    assert max(map(len, got)) == FRAMES_AT_A_TIME


def test_another_implementation_gets_in_and_out():
    client, layer = WSConnection(ConnectionType.CLIENT), WebSocketLayer("/mqtt")
    layer.receive_data(client.send(Request(host="gateway", target="/mqtt", subprotocols=["mqtt"])))
    client.receive_data(layer.data_to_send())
    (accepted,) = client.events()
    assert isinstance(accepted, AcceptConnection)
    assert accepted.subprotocol == "mqtt"
    assert layer.receive_data(client.send(BytesMessage(data=b"hello")) + client.send(Ping())) == b"hello"
    layer_says = layer.data_to_send() + bytes(layer.send(b"you"))
    layer.close()
    client.receive_data(layer_says + layer.data_to_send())
    pong, message, end = client.events()
    assert isinstance(pong, Pong)
    assert message.data == b"you"
    assert isinstance(end, CloseConnection)
    assert end.code == 1000


def test_another_implementation_is_refused():
    client, layer = WSConnection(ConnectionType.CLIENT), WebSocketLayer("/mqtt")
    with pytest.raises(StreamError):
        layer.receive_data(client.send(Request(host="gateway", target="/", subprotocols=["mqtt"])))
    client.receive_data(layer.data_to_send())
    assert [event.status_code for event in client.events() if isinstance(event, RejectConnection)] == [404]


@settings(max_examples=300)
@given(st.binary(max_size=400), st.booleans())
def test_any_bytes_are_taken_or_refused(data, is_opened):
    layer = opened() if is_opened else WebSocketLayer("/mqtt")
    with contextlib.suppress(StreamError):
        layer.receive_data(data)


@pytest.mark.parametrize(
    ("said", "name"),
    [(b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00", "MQTT"), (b"\x16\x03\x01\x02\x00\x01\x00", "TLS")],
)
def test_what_is_no_http_is_refused_by_what_it_is(said, name):
    with pytest.raises(StreamError, match=f"websocket: no HTTP, but {name}"):
        WebSocketLayer("/mqtt").receive_data(said + b"\r\n\r\n")
