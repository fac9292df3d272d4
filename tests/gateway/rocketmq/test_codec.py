from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from gateway.rocketmq.codec import NO_INTEGER, Frames, SendHeader, cut_frames, read_header, read_integer, unescape
from gateway.rocketmq.commands import HEADER_BINARY, HEADER_JSON
from gateway.rocketmq.errors import FrameError
from tests.support.rocketmq import send_frame

LIMIT = 1 << 24
FRAME = send_frame(b"body")


def cut(data: bytes, limit: int = LIMIT) -> tuple[Frames, int]:
    frames = Frames(8)
    return frames, cut_frames(data, 0, frames, limit)


def test_whole_frames_are_cut_and_a_tail_is_left():
    frames, pos = cut(FRAME * 3 + FRAME[:-1])
    assert frames.count == 3
    assert pos == 3 * len(FRAME)
    assert list(frames.code[:3]) == [310] * 3
    assert (FRAME * 3)[: frames.body_end[2]] == FRAME * 3
    assert bytes(frames.buf[frames.header_end[1] : frames.body_end[1]]) == b"body"


@pytest.mark.parametrize("size", range(len(FRAME)))
def test_a_part_of_a_frame_gives_nothing(size):
    frames, pos = cut(FRAME[:size])
    assert (frames.count, pos) == (0, 0)


def test_full_columns_leave_the_rest_for_the_next_call():
    frames, pos = cut(FRAME * 10)
    assert (frames.count, pos) == (8, 8 * len(FRAME))
    assert cut_frames(FRAME * 10, pos, frames, LIMIT) == 10 * len(FRAME)
    assert frames.count == 2


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x00\x00\x03\x00\x00\x00\x00",  # shorter than its own header length
        b"\x00\x00\x00\x04\x00\x00\x00\x01",  # header past the frame
        b"\x01\x00\x00\x01\x00\x00\x00\x00",  # over the limit
        b"\xff\xff\xff\xff\x00\x00\x00\x00",  # negative to others
        b"\x00\x00\x00\x08\x02\x00\x00\x00",  # no such header type
        b"GET / HTTP/1.1\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01",  # TLS on a plain port
    ],
)
def test_an_impossible_frame_is_an_error_after_those_before_it(data):
    with pytest.raises(FrameError):
        cut(data)
    frames, pos = cut(FRAME + data)
    assert (frames.count, pos) == (1, len(FRAME))
    with pytest.raises(FrameError):
        cut_frames(FRAME + data, pos, frames, LIMIT)


@given(st.binary(max_size=200))
def test_any_bytes_are_frames_or_the_protocol_error(data):
    frames = Frames(8)
    try:
        pos = cut_frames(data, 0, frames, LIMIT)
    except FrameError:
        return
    assert 0 <= pos <= len(data)


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
    frames, _ = cut(frame)
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
    ],
)
def test_json_of_another_shape_is_left_to_the_parser(header):
    assert fields_of(header, HEADER_JSON) is None


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
