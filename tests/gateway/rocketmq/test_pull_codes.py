"""What a pull is answered with by its offset alone."""

from __future__ import annotations

import pytest

from gateway.rocketmq.pull_codes import encode_busy, judge_pull
from lmq.remoting.commands import decode_header
from lmq.remoting.frames import Frames, cut_frames
from lmq.remoting.response_codes import ResponseCode


@pytest.mark.parametrize(
    ("offset", "low", "high", "code", "next_offset"),
    [
        (0, 0, 0, ResponseCode.PULL_NOT_FOUND, 0),
        (5, 0, 0, ResponseCode.PULL_OFFSET_MOVED, 0),
        (1, 2, 9, ResponseCode.PULL_OFFSET_MOVED, 2),
        (2, 2, 9, ResponseCode.SUCCESS, 2),
        (9, 2, 9, ResponseCode.PULL_NOT_FOUND, 9),
        (10, 2, 9, ResponseCode.PULL_OFFSET_MOVED, 9),
    ],
)
def test_a_pull_is_judged_by_the_ends_of_its_queue(offset, low, high, code, next_offset):
    found, remark, goes_on_at = judge_pull(offset, low, high)
    assert (found, goes_on_at) == (code, next_offset)
    assert remark


def test_a_pull_whose_queue_cannot_be_told_of_is_to_come_again():
    data = encode_busy(7, 0)
    frames = Frames(1)
    cut_frames(data, 0, frames, len(data))
    said = decode_header(frames.header_type[0], data[frames.header_start[0] : frames.header_end[0]], b"")
    assert (said.code, said.opaque, said.is_response) == (ResponseCode.SYSTEM_BUSY, 7, True)
