from __future__ import annotations

from pamqp import body, frame, heartbeat

from gateway.amqp.frames import FRAME_BODY, FRAME_HEARTBEAT, encode_frame


def test_frames_are_written_as_pamqp_writes_them():
    assert encode_frame(FRAME_BODY, 7, b"abc") == frame.marshal(body.ContentBody(b"abc"), 7)
    assert encode_frame(FRAME_HEARTBEAT, 0, b"") == frame.marshal(heartbeat.Heartbeat(), 0)
