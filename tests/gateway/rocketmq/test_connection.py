from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from gateway.rocketmq.connection import Connection
from gateway.rocketmq.send_run import SendRun
from lmq.remoting.errors import FrameError
from lmq.remoting.frames import Frames
from tests.support.rocketmq import LOCALHOST, request_frame, send_frame

UNIQ = b"0" * 28
FRAMES = [
    send_frame(b"a", opaque=1),
    send_frame(b"b" * 3000, opaque=2, header_type=1),
    request_frame(34, b"{}", opaque=3),
    request_frame(30, opaque=4, header_type=1, topic="T", queueId=0),
    send_frame(b"", opaque=5),
    send_frame(b"c", opaque=6, m="true"),
]
SAID = [("send", 1), ("send", 2), (34, 3), (30, 4), ("send", 5), (310, 6)]


def connection(limit: int = 1 << 24) -> Connection:
    return Connection(Frames(4), SendRun(1 << 22, 30_000), limit, LOCALHOST)


def said_by(peer: Connection) -> list[tuple[object, int]]:
    found: list[tuple[object, int]] = []
    for event in peer.events(UNIQ):
        if isinstance(event, SendRun):
            found += [("send", event.batch.tag[i]) for i in range(event.count)]
        else:
            found.append((event.code, event.opaque))
    return found


def test_frames_given_whole_are_said_in_order():
    peer = connection()
    peer.receive_data(b"".join(FRAMES))
    assert said_by(peer) == SAID
    assert not peer.receive_eof()


def test_frames_given_byte_by_byte_are_said_in_order():
    peer = connection()
    found = []
    for byte in b"".join(FRAMES):
        peer.receive_data(bytes((byte,)))
        found += said_by(peer)
    assert found == SAID


@given(st.lists(st.integers(1, 700), min_size=1, max_size=30))
def test_frames_given_in_any_pieces_are_said_in_order(sizes):
    data = b"".join(FRAMES) * 3
    peer = connection()
    found = []
    pos = turn = 0
    while pos < len(data):
        size = sizes[turn % len(sizes)]
        peer.receive_data(data[pos : pos + size])
        found += said_by(peer)
        pos += size
        turn += 1
    assert found == SAID * 3


def test_a_tail_waits_for_the_rest():
    peer = connection()
    peer.receive_data(FRAMES[0] + FRAMES[1][:20])
    assert said_by(peer) == SAID[:1]
    assert peer.receive_eof()
    peer.receive_data(FRAMES[1][20:])
    assert said_by(peer) == SAID[1:2]


def test_more_frames_than_are_cut_at_a_time_are_all_said():
    peer = connection()
    peer.receive_data(FRAMES[0] * 11)
    assert said_by(peer) == SAID[:1] * 11


def test_what_comes_before_a_malformed_frame_is_said_first():
    peer = connection()
    peer.receive_data(FRAMES[2] + b"\xff" * 8)
    events = peer.events(UNIQ)
    assert next(events).opaque == 3
    with pytest.raises(FrameError):
        next(events)


def test_a_header_that_is_none_is_the_protocol_error():
    peer = connection()
    peer.receive_data(b"\x00\x00\x00\x06\x00\x00\x00\x02{}"[:10] + FRAMES[0])
    assert said_by(peer)[0] == (0, 0)
    peer.receive_data(b"\x00\x00\x00\x06\x00\x00\x00\x02{x")
    with pytest.raises(FrameError):
        said_by(peer)


def test_a_frame_over_the_limit_is_the_protocol_error():
    peer = connection(1024)
    peer.receive_data(FRAMES[1][:8])
    with pytest.raises(FrameError):
        said_by(peer)


@given(st.lists(st.binary(max_size=60), max_size=6))
def test_any_bytes_are_said_or_the_protocol_error(pieces):
    peer = connection()
    try:
        for piece in pieces:
            peer.receive_data(piece)
            said_by(peer)
    except FrameError:
        return


@given(st.data())
def test_damaged_frames_are_said_or_the_protocol_error(data):
    stream = bytearray(b"".join(FRAMES))
    for _ in range(data.draw(st.integers(1, 5))):
        stream[data.draw(st.integers(0, len(stream) - 1))] = data.draw(st.integers(0, 255))
    peer = connection()
    try:
        peer.receive_data(bytes(stream))
        said_by(peer)
    except FrameError:
        return
