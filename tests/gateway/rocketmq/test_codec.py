from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from gateway.rocketmq.codec import NO_INTEGER, SendHeader, read_header, read_integer, unescape
from lmq.remoting.commands import HEADER_BINARY, HEADER_JSON
from lmq.remoting.frames import Frames, cut_frames
from tests.support.rocketmq import send_frame


def cut(data: bytes) -> Frames:
    frames = Frames(8)
    cut_frames(data, 0, frames, len(data))
    return frames


def fields_of(header: bytes, header_type: int) -> dict[str, bytes] | None:
    found = SendHeader()
    if not read_header(header, 0, len(header), header_type, found):
        return None
    return {
        chr(97 + i): header[found.start[i] : found.end[i]] for i in range(len(found.start)) if found.start[i] >= 0
    } | {"code": b"%d" % found.code, "opaque": b"%d" % found.opaque, "flag": b"%d" % found.flag}


@pytest.mark.parametrize("code", [10, 310])
@pytest.mark.parametrize("header_type", [HEADER_JSON, HEADER_BINARY])
def test_both_encodings_give_the_fields_of_a_send(header_type, code):
    frame = send_frame(code=code, header_type=header_type, topic="Orders", e="3", opaque=77, flag=2)
    frames = cut(frame)
    fields = fields_of(frame[8 : frames.header_end[0]], header_type)
    assert fields is not None
    assert fields["b"] == b"Orders"
    assert fields["e"] == b"3"
    assert (fields["code"], fields["opaque"], fields["flag"]) == (b"%d" % code, b"77", b"2")


def test_json_numbers_and_booleans_are_fields_too():
    header = b'{"code":310,"extFields":{"e":3,"k":false,"m":null},"opaque":5,"flag":0,"version":121}'
    fields = fields_of(header, HEADER_JSON)
    assert fields is not None
    assert (fields["e"], fields["k"], fields["m"]) == (b"3", b"false", b"null")


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"{}",
        b"[]",
        b'{"code":310',
        b'{"code":310}x',
        b'{"code":1.5}',
        b'{"code":01}',
        b'{"code":-1}',
        b'{"code":99999999999}',
        b'{"code": 310}',
        b'{"code":310,"remark":"x"}',
        b'{"extFields":[]}',
        b'{"extFields":{}}',
        b'{"extFields":{"a":{}}}',
        b'{"extFields":{"a":tru}}',
        b'{"extFields":{"a":"x}}',
        b'{"extFields":{"a":"x\\"}}',
        b'{"a\\"}',
        b'{"\\u0063ode":310}',
        b'{"extFields":{"\\u0062":"T"}}',
    ],
)
def test_json_of_another_shape_is_left_to_the_parser(header):
    assert fields_of(header, HEADER_JSON) is None


def test_names_that_begin_as_known_ones_are_others():
    header = b'{"code":310,"opaqXX":7,"remaXX":1,"opaque":5,"flag":0}'
    fields = fields_of(header, HEADER_JSON)
    assert fields == {"code": b"310", "opaque": b"5", "flag": b"0"}


@given(st.binary(max_size=120), st.sampled_from([HEADER_JSON, HEADER_BINARY]))
def test_any_header_is_read_or_left(header, header_type):
    fields_of(header, header_type)


@given(st.text(max_size=60))
def test_unescape_reads_what_json_wrote(text):
    written = json.dumps(text)[1:-1].encode()
    out = bytearray(len(written))
    if any(0xD800 <= ord(char) < 0xE000 for char in text):
        return
    assert bytes(out[: unescape(written, 0, len(written), out)]) == text.encode()


@pytest.mark.parametrize(
    "written",
    [b"\\", b"\\u12", b"\\u12G4", b"\\x", b"\\ud800", b"\\ud800x", b"\\ud800\\n", b"\\ud800\\u0041", b"\\udc00"],
)
def test_unescape_refuses_bad_escapes(written):
    assert unescape(written, 0, len(written), bytearray(16)) == -1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"0", 0),
        (b"-7", -7),
        (b"1790000000000", 1_790_000_000_000),
        (b"999999999999999999", 999_999_999_999_999_999),
        (b"1000000000000000000", NO_INTEGER),
        (b"", NO_INTEGER),
        (b"-", NO_INTEGER),
        (b"1e3", NO_INTEGER),
        (b"007", NO_INTEGER),
    ],
)
def test_integers_are_read_strictly(text, value):
    assert read_integer(text, 0, len(text)) == value
