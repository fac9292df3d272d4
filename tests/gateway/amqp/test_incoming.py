from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from gateway.amqp.errors import AmqpError
from gateway.amqp.frames import FRAME_BODY, FRAME_METHOD, encode_frame
from gateway.amqp.incoming import Incoming

PAYLOAD_MAX = 100
FRAMES = st.lists(
    st.tuples(st.sampled_from((FRAME_METHOD, FRAME_BODY)), st.integers(0, 65_535), st.binary(max_size=40))
)


def take_all(incoming):
    """Return type, channel and payload of what is there, and let the rest wait."""
    frames = []
    while packed := incoming.cut(PAYLOAD_MAX):
        frames.append((packed & 0xFF, packed >> 8 & 0xFFFF, incoming.take_payload(packed >> 24)))
    incoming.keep_tail(False, True)
    return frames


@given(FRAMES, st.lists(st.integers(1, 30), min_size=1))
def test_frames_are_the_same_however_their_bytes_come(frames, sizes):
    data = b"".join(encode_frame(*frame) for frame in frames)
    incoming, pos, taken, turn = Incoming(8), 0, [], 0
    while pos < len(data):
        size = sizes[turn % len(sizes)]
        incoming.receive(data[pos : pos + size])
        taken += take_all(incoming)
        pos, turn = pos + size, turn + 1
    assert taken == frames
    assert not incoming.has_tail()


@pytest.mark.parametrize("wrong", [b"\x07rest", b"\x01\x00\x01\x00\x00\x01\x00", b"\x01\x00\x01\x00\x00\x00\x00\x00"])
def test_nothing_is_cut_after_what_is_no_frame(wrong):
    incoming = Incoming(8)
    incoming.receive(wrong)
    with pytest.raises(AmqpError):
        incoming.cut(PAYLOAD_MAX)
    incoming.keep_tail(False, True)
    incoming.receive(encode_frame(FRAME_METHOD, 1, b"later"))
    assert take_all(incoming) == []
    assert not incoming.has_tail()


def test_what_waits_for_an_answer_is_taken_up_with_no_bytes_more():
    incoming = Incoming(8)
    incoming.receive(encode_frame(FRAME_METHOD, 1, b"later"))
    assert not incoming.is_waiting()
    incoming.keep_tail(False, False)
    assert incoming.is_waiting()
    incoming.receive(b"")
    assert take_all(incoming) == [(FRAME_METHOD, 1, b"later")]


def test_of_a_connection_that_is_over_nothing_is_kept():
    incoming = Incoming(8)
    incoming.receive(encode_frame(FRAME_METHOD, 1, b"later"))
    incoming.keep_tail(True, True)
    assert not incoming.has_tail()
