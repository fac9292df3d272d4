from __future__ import annotations

import pytest

from core.message import DispatchSet, RefRoom, Route
from gateway.rocketmq.answer_codec import encode_send_answers
from gateway.rocketmq.send_run import SendRun
from lmq.remoting.commands import HEADER_BINARY, HEADER_JSON, Command, decode_header
from lmq.remoting.frames import Frames, cut_frames
from tests.support.rocketmq import read_run, send_frame

HOST_HEX = b"7F00000100002A9F"


def stored(data: bytes) -> SendRun:
    run = read_run(data)
    run.batch.routes[:] = [Route(t.topic, t.queue_id, 0, b"", DispatchSet([], [], b"", RefRoom())) for t in run.targets]
    for i in range(run.batch.count):
        run.batch.physical_offset[i] = 1000 + i
        run.batch.queue_offset[i] = 50 + i
    return run


def decoded(data: bytes) -> list[Command]:
    frames = Frames()
    assert cut_frames(data, 0, frames, 1 << 24) == len(data)
    return [
        decode_header(frames.header_type[i], data[frames.header_start[i] : frames.header_end[i]])
        for i in range(frames.count)
    ]


@pytest.mark.parametrize("header_type", [HEADER_JSON, HEADER_BINARY])
def test_a_stored_send_is_answered_with_its_ids(header_type):
    key = 'U"\\\x1fé'
    frame = send_frame(header_type=header_type, opaque=7, e="2", properties=f"UNIQ_KEY\x01{key}\x02")
    (answer,) = decoded(encode_send_answers(stored(frame), HOST_HEX, 0, 1))
    assert (answer.code, answer.opaque, answer.flag, answer.header_type) == (0, 7, 1, header_type)
    assert answer.ext == {
        "queueId": "2",
        "TRACE_ON": "true",
        "MSG_REGION": "DefaultRegion",
        "msgId": "7F00000100002A9F00000000000003E8",
        "queueOffset": "50",
        "transactionId": key,
    }


def test_a_negative_opaque_comes_back():
    (answer,) = decoded(encode_send_answers(stored(send_frame(header_type=HEADER_BINARY, opaque=-9)), HOST_HEX, 0, 1))
    assert answer.opaque == -9


def test_one_way_and_unstored_sends_are_not_answered():
    run = stored(send_frame(opaque=1) + send_frame(opaque=2, flag=2) + send_frame(opaque=3) + send_frame(opaque=4))
    run.batch.physical_offset[2] = -1
    assert [answer.opaque for answer in decoded(encode_send_answers(run, HOST_HEX, 0, 4))] == [1, 4]
    assert [answer.opaque for answer in decoded(encode_send_answers(run, HOST_HEX, 1, 4))] == [4]
