from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from lmq.remoting.errors import FrameError
from lmq.remoting.frames import FrameInput, Frames, cut_frames
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


@pytest.mark.parametrize(
    ("header", "code"),
    [
        (b'{"code":34,"flag":0}', 34),
        (b'{"code":,"flag":0}', 0),
        (b'{ "code":34,"flag":0}', 0),
        (b'{"flag":0,"code":34}', 0),
        (b'{"code":', 0),
        (b"", 0),
    ],
)
def test_the_code_is_told_where_the_header_begins_with_it(header, code):
    frames, _ = cut((4 + len(header)).to_bytes(4, "big") + len(header).to_bytes(4, "big") + header)
    assert (frames.count, frames.code[0]) == (1, code)


@given(st.lists(st.integers(1, 700), min_size=1, max_size=30))
def test_frames_that_come_in_any_pieces_are_decoded_in_order(sizes):
    data = b"".join(send_frame(b"x" * (7 * i), opaque=i, header_type=i % 2) for i in range(20))
    input_ = FrameInput(Frames(4), LIMIT)
    found = []
    pos = turn = 0
    while pos < len(data):
        size = sizes[turn % len(sizes)]
        input_.receive_data(data[pos : pos + size])
        while input_.cut():
            commands = [input_.decode(i) for i in range(input_.frames.count)]
            found += [(command.opaque, len(command.body)) for command in commands]
        pos += size
        turn += 1
    assert found == [(i, 7 * i) for i in range(20)]


def test_frames_given_back_are_cut_again():
    input_ = FrameInput(Frames(4), LIMIT)
    input_.receive_data(b"".join(send_frame(opaque=i) for i in range(3)) + FRAME[:9])
    assert input_.cut()
    input_.unread(1)
    assert input_.cut()
    assert [input_.decode(i).opaque for i in range(input_.frames.count)] == [1, 2]
    assert not input_.cut()
    input_.receive_data(FRAME[9:])  # the rest of what began with its first 9 bytes
    assert input_.cut()
    assert (input_.frames.count, input_.decode(0).body) == (1, b"body")
