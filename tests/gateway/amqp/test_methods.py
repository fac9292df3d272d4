from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, strategies as st
from pamqp import commands, frame
from pamqp.commands import Basic, Connection, Exchange, Queue

from gateway.amqp.errors import AmqpError
from gateway.amqp.field_table import TABLE_FIELDS_MAX
from gateway.amqp.methods import decode_method, encode_ack, encode_content, encode_method, encode_nack, method_name
from tests.support import amqp

METHODS = [
    Connection.StartOk({"product": "x", "capabilities": {"basic.nack": True}}, "PLAIN", "\0guest\0guest", "en_US"),
    Connection.TuneOk(2047, 131072, 60),
    Connection.Open("/"),
    Connection.Close(200, "bye", 0, 0),
    Exchange.Declare(exchange="x", exchange_type="topic", durable=True, internal=True, arguments={"a": 1}),
    Queue.Declare(queue="q", durable=True, auto_delete=True, arguments={"x-queue-type": "classic"}),
    Queue.Delete(queue="q", if_empty=True),
    Basic.Consume(queue="q", consumer_tag="c", no_ack=True, exclusive=True),
    Basic.Qos(0, 10, True),
    Basic.Nack(5, True, False),
    Basic.Recover(True),
    commands.Confirm.Select(),
    commands.Channel.Open(),
]


def as_dict(method):
    """Return the arguments, tables as lists of their names."""
    return {name: sorted(value) if isinstance(value, dict) else value for name, value in method}


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_methods_are_read_as_pamqp_wrote_them(method):
    payload = amqp.method(1, method)[7:-1]
    found = decode_method(payload)
    assert type(found) is type(method)
    assert as_dict(found) == as_dict(method)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_a_method_cut_short_or_too_long_is_refused(method):
    payload = amqp.method(1, method)[7:-1]
    for size in range(4, len(payload)):
        with pytest.raises(AmqpError, match="FRAME_ERROR - cannot decode <<"):
            decode_method(payload[:size])
    with pytest.raises(AmqpError, match="FRAME_ERROR - cannot decode <<"):
        decode_method(payload + b"\0")


@pytest.mark.parametrize("payload", [b"\x00\x3c\x03\xe7", b"\xff\xff\xff\xff"])
def test_an_unknown_method_is_refused(payload):
    with pytest.raises(AmqpError, match="COMMAND_INVALID - unknown method"):
        decode_method(payload)


@pytest.mark.parametrize("payload", [b"", b"\x00", b"\x00\x3c\x00"])
def test_what_is_too_short_for_a_method_is_refused(payload):
    with pytest.raises(AmqpError, match=r"FRAME_ERROR - type 1, all octets = <<.*>>: unknown_frame"):
        decode_method(payload)


def test_text_that_is_not_utf_8_is_refused():
    payload = b"\x00\x32\x00\x0a\x00\x00\x02\xc3\x28\x00\x00\x00\x00\x00"
    with pytest.raises(AmqpError, match="FRAME_ERROR - Malformed UTF-8 in shortstr"):
        decode_method(payload)


@pytest.mark.parametrize(
    "make",
    [
        lambda table: Queue.Declare(queue="q", arguments=table),
        lambda table: Queue.Bind(queue="q", exchange="x", arguments=table),
        lambda table: Exchange.Declare(exchange="x", arguments=table),
        lambda table: Basic.Consume(queue="q", arguments=table),
        lambda table: Connection.StartOk(table, "PLAIN", "\0a\0b", "en_US"),
    ],
)
def test_a_table_of_more_fields_than_anybody_needs_is_refused(make):
    fits = {f"n{i}": i for i in range(TABLE_FIELDS_MAX)}
    decode_method(amqp.method(1, make(fits))[7:-1])
    with pytest.raises(AmqpError, match=r"SYNTAX_ERROR - a table in \S+ has more than 256 fields"):
        decode_method(amqp.method(1, make({**fits, "one": 1}))[7:-1])


@given(st.sampled_from(METHODS), st.data())
def test_no_bytes_make_decoding_fail_otherwise(method, data):
    payload = bytearray(amqp.method(1, method)[7:-1])
    for _ in range(data.draw(st.integers(1, 4))):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(AmqpError):
        decode_method(bytes(payload))


SENT = [
    Connection.Tune(2047, 131072, 60),
    Queue.DeclareOk("q", 3, 1),
    Basic.Return(312, "NO_ROUTE", "x", "k"),
    Basic.Cancel("c", nowait=True),
    Basic.Consume(queue="q", no_ack=True),
    Connection.Start(0, 9, {"product": "p", "n": 1, "capabilities": {"a": True}}, "PLAIN", "en_US"),
]


@pytest.mark.parametrize("method", SENT, ids=lambda method: method.name)
def test_methods_are_written_as_pamqp_writes_them(method):
    assert encode_method(method, 9) == frame.marshal(method, 9)


def test_names_that_pamqp_would_refuse_are_written():
    answer = Queue.DeclareOk(message_count=0, consumer_count=0)
    answer.queue = "grüße!"
    assert "grüße!".encode() in encode_method(answer, 1)


def test_confirms_and_contents():
    assert encode_ack(3, 7, multiple=True) == frame.marshal(Basic.Ack(7, True), 3)
    assert encode_nack(3, 7) == frame.marshal(Basic.Nack(7, False, False), 3)
    data = encode_content(3, amqp.block(content_type="a"), b"x" * 10, 4)
    (_, header), *bodies = amqp.decode_frames(data)
    assert header.properties.content_type == "a"
    assert [body.value for _, body in bodies] == [b"xxxx", b"xxxx", b"xx"]


def test_methods_have_names():
    assert method_name(0x3C0028) == "basic.publish"
    assert method_name(0x3C03E7) == "60.999"
