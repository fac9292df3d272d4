from __future__ import annotations

from gateway.rocketmq.lost_sends import refuse_answers
from lmq.remoting.commands import FLAG_RESPONSE, HEADER_BINARY, HEADER_JSON, Command, decode_header, encode_command
from lmq.remoting.frames import Frames, cut_frames
from lmq.remoting.response_codes import ResponseCode


def decode(data):
    frames = Frames(16)
    assert cut_frames(data, 0, frames, len(data)) == len(data)
    return [
        decode_header(frames.header_type[i], data[frames.header_start[i] : frames.header_end[i]], b"")
        for i in range(frames.count)
    ]


def test_success_becomes_a_refusal_and_refusals_stay_as_they_are():
    answers = [
        Command(ResponseCode.SUCCESS, 1, FLAG_RESPONSE, {"msgId": "AB"}, header_type=HEADER_JSON),
        Command(ResponseCode.NO_PERMISSION, 2, FLAG_RESPONSE, remark="not you", header_type=HEADER_BINARY),
        Command(ResponseCode.SUCCESS, 3, FLAG_RESPONSE, header_type=HEADER_BINARY),
    ]
    count, data = refuse_answers(b"".join(map(encode_command, answers)), ResponseCode.SYSTEM_ERROR, "lost")
    assert count == 2
    assert [(found.opaque, found.code, found.remark) for found in decode(data)] == [
        (1, ResponseCode.SYSTEM_ERROR, "lost"),
        (2, ResponseCode.NO_PERMISSION, "not you"),
        (3, ResponseCode.SYSTEM_ERROR, "lost"),
    ]
    assert all(found.is_response for found in decode(data))


def test_nothing_stays_nothing():
    assert refuse_answers(b"", ResponseCode.SYSTEM_ERROR, "lost") == (0, b"")
