"""Frames that are cut by hand are what wsproto alone makes of them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st
from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, CloseConnection

from gateway.net.streams.frame_cutter import FrameCutter, head_of_binary

BINARY = 0x82
KEY = b"\x11\x22\x33\x44"


def masked(payload, key=KEY):
    return bytes(byte ^ key[at % 4] for at, byte in enumerate(payload))


def frame(first, payload=b"", *, key=KEY, has_mask=True, width=None):
    """Return a frame; `width` is that of its length: 0, 2 or 8 bytes, the shortest if None."""
    size = len(payload)
    if width is None:
        width = 0 if size < 126 else 2 if size < 65_536 else 8
    length = bytes([size]) if not width else bytes([126 if width == 2 else 127]) + size.to_bytes(width)
    head = bytes([first, length[0] | (0x80 if has_mask else 0)]) + length[1:]
    return head + (key + masked(payload, key) if has_mask else payload)


def note(event, seen):
    """Note an event; neighbours that carry data are one, for how it is cut means nothing."""
    if isinstance(event, BytesMessage):
        seen[-1] += bytes(event.data)
    else:
        seen += [repr(event), b""]
    return isinstance(event, CloseConnection)


def note_all(connection, seen):
    """Note all that wsproto has to say; return whether the stream has ended."""
    ends = [note(event, seen) for event in connection.events()]
    return True in ends


def by_wsproto(reads):
    """Return what wsproto alone sees after each read, until the end of the stream."""
    connection, seen, after = Connection(ConnectionType.SERVER), [b""], []
    for data in reads:
        connection.receive_data(data)
        is_over = note_all(connection, seen)
        after.append(list(seen))
        if is_over:
            break
    return after


def by_cutter(reads):
    """Return the same of the cutter, with wsproto for what is not plain."""
    connection, cutter, seen, after = Connection(ConnectionType.SERVER), FrameCutter(), [b""], []
    for data in reads:
        cutter.feed(data)
        is_over = False
        while not is_over and (piece := cutter.take()) is not None:
            if cutter.is_plain:
                seen[-1] += piece
            else:
                connection.receive_data(piece)
                is_over = note_all(connection, seen)
        after.append(list(seen))
        if is_over:
            break
    return after


PAYLOADS = st.binary(max_size=20) | st.integers(0, 300).map(bytes) | st.sampled_from([b"\x03\xe8", bytes(66_000)])
FIRSTS = st.sampled_from([BINARY] * 6 + [0x02, 0x00, 0x80, 0x89, 0x8A, 0x88, 0x81, 0x01, 0x83, 0xC2, 0x09]) | (
    st.integers(0, 255)
)
KEYS = st.binary(min_size=4, max_size=4)
PLAIN = st.builds(frame, st.just(BINARY), PAYLOADS, key=KEYS)
FRAGMENTED = st.lists(PAYLOADS, min_size=2, max_size=4).map(
    lambda parts: b"".join(
        frame((0 if at else 2) | (0x80 if at == len(parts) - 1 else 0), part) for at, part in enumerate(parts)
    )
)
CONTROL = st.builds(frame, st.sampled_from([0x89, 0x8A]), st.binary(max_size=125), key=KEYS)
ANY_FRAME = st.builds(frame, FIRSTS, PAYLOADS, key=KEYS, has_mask=st.sampled_from([True] * 9 + [False]))
LONGER = st.builds(frame, FIRSTS, st.binary(max_size=40), width=st.sampled_from([2, 8]))
HUGE = st.sampled_from([b"\x82\xff" + b"\xff" * 14, b"\x82\xff\x7f" + b"\xff" * 20, b"\x02\xff\x80" + bytes(20)])
STREAMS = st.lists(PLAIN | PLAIN | FRAGMENTED | CONTROL | ANY_FRAME | LONGER | HUGE | st.binary(max_size=9), max_size=8)


@settings(max_examples=400)
@given(STREAMS.map(b"".join), st.lists(st.integers(1, 400), max_size=30))
def test_what_is_cut_is_what_wsproto_sees_after_each_read(stream, sizes):
    reads = []
    for size in sizes:
        reads, stream = [*reads, stream[:size]], stream[size:]
    reads = [read for read in [*reads, stream] if read]
    assert by_cutter(reads) == by_wsproto(reads)


@settings(max_examples=100)
@given(st.lists(PLAIN | FRAGMENTED | CONTROL | ANY_FRAME | LONGER | HUGE, max_size=4).map(b"".join))
def test_so_it_is_byte_by_byte(stream):
    reads = [bytes([byte]) for byte in stream[:2_000]]
    assert by_cutter(reads) == by_wsproto(reads)


def taken(cutter):
    pieces = []
    while (piece := cutter.take()) is not None:
        pieces.append((piece, cutter.is_plain))
    return pieces


def test_frames_after_another_one_are_plain_again():
    ping, text = frame(0x89, b"?"), frame(0x02, b"a") + frame(0x89) + frame(0x80, b"b")
    cutter = FrameCutter()
    cutter.feed(frame(BINARY, b"one") + ping + text + frame(BINARY, b"two"))
    pieces = taken(cutter)
    assert pieces[0] == (b"one", True)
    assert pieces[-1] == (b"two", True)
    assert b"".join(piece for piece, is_plain in pieces if not is_plain) == ping + text


def test_payload_is_given_as_it_comes_and_a_head_is_waited_for():
    cutter, sent = FrameCutter(), frame(BINARY, bytes(range(200)))
    cutter.feed(sent[:5])
    assert taken(cutter) == []
    cutter.feed(sent[5:11])
    assert taken(cutter) == [(b"\0\1\2", True)]
    cutter.feed(sent[11:])
    assert taken(cutter) == [(bytes(range(3, 200)), True)]


@pytest.mark.parametrize("size", [0, 125, 126, 65_535, 65_536])
def test_head_is_that_of_wsproto(size):
    assert head_of_binary(size) + bytes(size) == Connection(ConnectionType.SERVER).send(BytesMessage(data=bytes(size)))
