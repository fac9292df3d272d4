from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from lmq.remoting.commands import (
    FLAG_ONE_WAY,
    FLAG_RESPONSE,
    HEADER_BINARY,
    HEADER_JSON,
    Command,
    answer,
    decode_header,
    encode_command,
    encode_header,
    encode_prefix,
)
from lmq.remoting.errors import FrameError

FIELDS = ("code", "opaque", "flag", "ext", "body", "remark", "version", "language", "header_type")
TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)


@given(
    st.builds(
        Command,
        code=st.integers(0, 32_767),
        opaque=st.integers(-(2**31), 2**31 - 1),
        flag=st.integers(0, 3),
        ext=st.dictionaries(TEXTS, TEXTS, max_size=5),
        remark=st.none() | TEXTS.filter(bool),
        header_type=st.sampled_from([HEADER_JSON, HEADER_BINARY]),
    )
)
def test_a_header_decodes_to_what_was_encoded(command):
    decoded = decode_header(command.header_type, encode_header(command))
    for name in FIELDS:
        assert getattr(decoded, name) == getattr(command, name)


def test_a_frame_is_length_type_header_and_body():
    command = Command(105, opaque=7, body=b"xyz")
    frame = encode_command(command)
    header = encode_header(command)
    assert frame == encode_prefix(header, HEADER_JSON, 3) + header + b"xyz"
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4


def test_json_is_compact_and_always_has_ext_fields():
    header = encode_header(Command(0))
    assert b" " not in header
    assert json.loads(header)["extFields"] == {}


def test_an_answer_takes_opaque_and_encoding_from_its_request():
    request = Command(105, opaque=42, header_type=HEADER_BINARY)
    response = answer(request, 17, "no such topic", ext={"a": "b"})
    assert (response.opaque, response.header_type, response.flag) == (42, HEADER_BINARY, FLAG_RESPONSE)
    assert response.is_response
    assert not response.is_one_way
    assert Command(1, flag=FLAG_ONE_WAY).is_one_way


def test_numbers_and_booleans_in_ext_fields_become_text():
    header = b'{"code":10,"extFields":{"a":5,"b":true,"c":false,"d":null,"e":1.5,"f":[1]},"opaque":1}'
    assert decode_header(HEADER_JSON, header).ext == {"a": "5", "b": "true", "c": "false", "e": "1.5"}


def test_unknown_languages_and_fields_are_let_through():
    header = b'{"code":10,"language":"COBOL","opaque":1,"more":{"x":1}}'
    assert decode_header(HEADER_JSON, header).code == 10


def test_white_space_around_a_header_is_let_through():
    assert decode_header(HEADER_JSON, b' \r\n\t{"code": 10 }\n ').code == 10


@pytest.mark.parametrize(
    ("header_type", "header"),
    [
        (HEADER_JSON, b""),
        (HEADER_JSON, b"[]"),
        (HEADER_JSON, b"{"),
        (HEADER_JSON, b"\xff\xfe"),
        (HEADER_JSON, b'{"code":10}{"code":10}'),
        (HEADER_JSON, b'{"code":"10"}'),
        (HEADER_JSON, b'{"code":true}'),
        (HEADER_JSON, b'{"code":4294967296}'),
        (HEADER_JSON, b'{"code":10,"opaque":1.5}'),
        (HEADER_JSON, b'{"code":10,"extFields":{"a":"\\ud800"}}'),
        (HEADER_JSON, b'{"code":10,"remark":"\\udc00"}'),
        (HEADER_JSON, b"[" * 100_000),
        (HEADER_JSON, b'{"code":' + b"9" * 5000 + b"}"),
        (HEADER_BINARY, b""),
        (HEADER_BINARY, bytes(20)),
        (HEADER_BINARY, bytes(22)),
        (HEADER_BINARY, bytes(13) + b"\xff\xff\xff\xff" + bytes(4)),
        (HEADER_BINARY, bytes(13) + b"\x00\x00\x00\x09" + bytes(4)),
        (HEADER_BINARY, bytes(17) + b"\x00\x00\x00\x04" + b"\x00\x09ab"),
        (HEADER_BINARY, bytes(17) + b"\x00\x00\x00\x07" + b"\x00\x01\xff\x00\x00\x00\x00"),
    ],
)
def test_a_malformed_header_is_the_protocol_error(header_type, header):
    with pytest.raises(FrameError):
        decode_header(header_type, header)


@given(st.binary(max_size=200), st.sampled_from([HEADER_JSON, HEADER_BINARY]))
def test_any_header_decodes_or_is_the_protocol_error(header, header_type):
    try:
        decode_header(header_type, header)
    except FrameError:
        return


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists))
def test_any_json_decodes_or_is_the_protocol_error(value):
    for fields in (value, {"code": value}, {"extFields": {"a": value}}, {"extFields": value}, {"language": value}):
        try:
            decode_header(HEADER_JSON, json.dumps(fields).encode())
        except FrameError:
            continue
