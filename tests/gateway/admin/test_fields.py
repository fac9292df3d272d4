from __future__ import annotations

import base64
import datetime as dt

import pytest
from pamqp.commands import Basic

from core.properties import encode_properties
from gateway.admin.fields import Field, tell_fields

MARKUP = "<img src=x onerror=alert(1)>"


def test_fields_of_mqtt_are_told_in_order_with_equal_names_and_unescaped():
    encoded = encode_properties(
        [
            (b"LMQ_PROTOCOL", b"mqtt"),
            (b"CONTENT_TYPE", b"text/plain"),
            (b"LMQ_FORMAT", b"1"),
            (b"LMQ_RESPONSE_TOPIC", b"re/1"),
            (b"LMQ_CORRELATION", b"%00%01%FF"),
            (b"LMQ_TTL_MS", b"60000"),
            (b"k", MARKUP.encode()),
            (b"k", b"second"),
            (b"LMQ_PAIR", b"LMQ_SET=a%3Db%25"),
        ]
    )
    assert tell_fields(encoded) == [
        Field("property", "content type", "text/plain"),
        Field("property", "payload format", "UTF-8"),
        Field("property", "response topic", "re/1"),
        Field("property", "correlation data", "hex 00 01 ff"),
        Field("user property", "k", MARKUP),
        Field("user property", "k", "second"),
        Field("user property", "LMQ_SET", "a=b%"),
    ]


def test_fields_of_amqp_are_told_as_its_publisher_sent_them():
    at = dt.datetime(2026, 11, 27, tzinfo=dt.UTC)
    headers = {MARKUP: MARKUP, "n": 1, "nested": {"a": [1, True]}, "when": at}
    sent = Basic.Properties(
        content_type="text/html", headers=headers, correlation_id="c=1", delivery_mode=2, message_type="t"
    )
    encoded = encode_properties(
        [
            (b"LMQ_PROTOCOL", b"amqp"),
            (b"LMQ_AMQP", base64.b64encode(sent.marshal())),
            (b"CONTENT_TYPE", b"text/html"),
            (b"x-amqp-types", b"bn="),
            (b"LMQ_CORRELATION", b"c%3D1"),
        ]
    )
    assert tell_fields(encoded) == [
        Field("property", "content_type", "text/html"),
        Field("property", "delivery_mode", "2"),
        Field("property", "correlation_id", "c=1"),
        Field("property", "type", "t"),
        Field("header", MARKUP, MARKUP),
        Field("header", "n", "1"),
        Field("header", "nested", '{"a": [1, true]}'),
        Field("header", "when", str(int(at.timestamp()))),
    ]


@pytest.mark.parametrize(
    "block", [b"", b"!", base64.b64encode(b"\x80\x00\x05ab"), base64.b64encode(b"\x20\x00\x00\x00\x00\x02a")]
)
def test_of_a_block_that_cannot_be_read_the_fields_beside_it_are_told(block):
    encoded = encode_properties([(b"LMQ_AMQP", block), (b"CONTENT_TYPE", b"text/html"), (b"own", b"v")])
    assert tell_fields(encoded) == [Field("property", "content type", "text/html"), Field("user property", "own", "v")]


def test_rocketmqs_tags_and_keys_are_told_and_the_logs_own_are_not():
    encoded = encode_properties(
        [(b"TAGS", b"new"), (b"KEYS", b"k1 k2"), (b"INNER_MULTI_DISPATCH", b"%LMQ%x"), (b"own", b"two\nlines")]
    )
    assert tell_fields(encoded) == [
        Field("property", "TAGS", "new"),
        Field("property", "KEYS", "k1 k2"),
        Field("user property", "own", "two\nlines"),
    ]
