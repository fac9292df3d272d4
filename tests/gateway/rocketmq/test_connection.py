from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from gateway.rocketmq.connection import Connection, FramePool, Limits, Login
from gateway.rocketmq.errors import PeerSilentError
from gateway.rocketmq.send_run import RunPool, SendRun
from gateway.rocketmq.uniq_key import UniqPrefix
from lmq.remoting.commands import answer
from lmq.remoting.errors import FrameError
from lmq.remoting.signature import AccessKeys
from tests.support.rocketmq import LOCALHOST, request_frame, send_frame, signed

IDLE_MS = 1_000
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
    """Return a connection whose user is known."""
    return let_in(stranger(limit))


def let_in(peer: Connection, secret: bytes = b"", first: bytes = request_frame(105)) -> Connection:
    peer.receive_data(first, 0)
    assert isinstance(next(peer.events()), Login)
    peer.accept(secret)
    assert [event.code for event in peer.events()] == [105]
    return peer


def stranger(limit: int = 1 << 24) -> Connection:
    return Connection(FramePool(4), RunPool(1 << 22, 30_000), Limits(limit, IDLE_MS), UniqPrefix(1), LOCALHOST)


def said_by(peer: Connection) -> list[tuple[object, int]]:
    found: list[tuple[object, int]] = []
    for event in peer.events():
        if isinstance(event, SendRun):
            found += [("send", event.batch.tag[i]) for i in range(event.count)]
        else:
            found.append((event.code, event.opaque))
    return found


def test_frames_given_whole_are_said_in_order():
    peer = connection()
    peer.receive_data(b"".join(FRAMES), 0)
    assert said_by(peer) == SAID
    assert said_by(peer) == []


def test_frames_given_byte_by_byte_are_said_in_order():
    peer = connection()
    found = []
    for byte in b"".join(FRAMES):
        peer.receive_data(bytes((byte,)), 0)
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
        peer.receive_data(data[pos : pos + size], 0)
        found += said_by(peer)
        pos += size
        turn += 1
    assert found == SAID * 3


def test_a_tail_waits_for_the_rest():
    peer = connection()
    peer.receive_data(FRAMES[0] + FRAMES[1][:20], 0)
    assert said_by(peer) == SAID[:1]
    peer.receive_data(FRAMES[1][20:], 0)
    assert said_by(peer) == SAID[1:2]


def test_more_frames_than_are_cut_at_a_time_are_all_said():
    peer = connection()
    peer.receive_data(FRAMES[0] * 11, 0)
    assert said_by(peer) == SAID[:1] * 11


def test_run_and_frames_are_its_own_while_other_connections_of_the_door_go_on():
    frames, runs, limits, uniq = FramePool(4), RunPool(1 << 22, 30_000), Limits(1 << 24, IDLE_MS), UniqPrefix(1)
    one, other = (let_in(Connection(frames, runs, limits, uniq, LOCALHOST)) for _ in range(2))
    one.receive_data(FRAMES[0] * 2 + FRAMES[2], 0)
    run = next(one.events())
    other.receive_data(FRAMES[4] + FRAMES[3], 0)
    assert said_by(other) == [SAID[4], SAID[3]]
    assert [run.batch.tag[i] for i in range(run.count)] == [1, 1]
    assert said_by(one) == SAID[2:3]


def test_keys_of_runs_that_are_out_at_the_same_time_differ():
    peer = connection()
    keys = set()
    for _ in range(3):
        peer.receive_data(FRAMES[0] * 2, 0)
        (run,) = peer.events()
        keys |= {bytes(run.extra[run.uniq_start[i] : run.uniq_end[i]]) for i in range(run.count)}
    assert len(keys) == 6


def test_what_was_cut_off_a_run_comes_again():
    peer = connection()
    peer.receive_data(FRAMES[0] + FRAMES[4] + FRAMES[2], 0)
    run = next(peer.events())
    run.cut(1)
    peer.unread(run)
    run.release()
    assert said_by(peer) == [SAID[4], SAID[2]]


def test_nothing_is_said_after_the_end():
    peer = connection()
    peer.receive_data(FRAMES[0], 0)
    peer.receive_eof()
    assert said_by(peer) == []


def test_answers_are_sent_once_and_none_to_a_one_way_request():
    peer = connection()
    peer.receive_data(request_frame(34, opaque=7) + request_frame(34, opaque=8, flag=2), 0)
    for request in peer.events():
        peer.answer(request, answer(request, 0))
    frame = peer.data_to_send()
    peer.receive_data(frame, 0)
    assert said_by(peer) == [(0, 7)]
    assert peer.data_to_send() == b""


def test_peer_may_be_silent_for_as_long_as_the_limits_say():
    peer = stranger()
    assert peer.next_deadline_ms() == 0
    peer.handle_timer(500)
    peer.receive_data(FRAMES[0], 1_200)
    assert peer.next_deadline_ms() == 1_200 + IDLE_MS
    peer.handle_timer(1_199 + IDLE_MS)
    with pytest.raises(PeerSilentError):
        peer.handle_timer(1_200 + IDLE_MS)


def test_what_comes_before_a_malformed_frame_is_said_first():
    peer = connection()
    peer.receive_data(FRAMES[2] + b"\xff" * 8, 0)
    events = peer.events()
    assert next(events).opaque == 3
    with pytest.raises(FrameError):
        next(events)


def test_a_header_that_is_none_is_the_protocol_error():
    peer = connection()
    peer.receive_data(b"\x00\x00\x00\x06\x00\x00\x00\x02{}"[:10] + FRAMES[0], 0)
    assert said_by(peer)[0] == (0, 0)
    peer.receive_data(b"\x00\x00\x00\x06\x00\x00\x00\x02{x", 0)
    with pytest.raises(FrameError):
        said_by(peer)


def test_a_frame_over_the_limit_is_the_protocol_error():
    peer = connection(1024)
    peer.receive_data(FRAMES[1][:8], 0)
    with pytest.raises(FrameError):
        said_by(peer)


@given(st.lists(st.binary(max_size=60), max_size=6))
def test_any_bytes_are_said_or_the_protocol_error(pieces):
    peer = connection()
    try:
        for piece in pieces:
            peer.receive_data(piece, 0)
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
        peer.receive_data(bytes(stream), 0)
        said_by(peer)
    except FrameError:
        return


# Logins

ANN = AccessKeys("ann", "ann's own secret")
BOB = AccessKeys("bob", "bob's own secret")
SECRET = ANN.secret_key.encode()
SIGNED = [signed(frame, ANN) for frame in FRAMES]


def events_with_logins(peer: Connection, *, answers) -> list[object]:
    """Return what a peer says; each login is answered by the next of `answers`, a secret or None for no."""
    found: list[object] = []
    answers = list(answers)
    while True:
        event = next(peer.events(), None)
        if event is None:
            return found
        if isinstance(event, SendRun):
            found += [("send", event.batch.tag[i]) for i in range(event.count)]
            event.release()
        elif isinstance(event, Login):
            found.append(("login", event.request.opaque))
            secret = answers.pop(0)
            if secret is None:
                peer.refuse()
            else:
                peer.accept(secret)
        else:
            found.append((event.code, event.opaque))


def test_first_request_is_a_login_and_comes_itself_once_that_went_well():
    peer = stranger()
    peer.receive_data(b"".join(FRAMES), 0)
    assert events_with_logins(peer, answers=[b""]) == [("login", 1), *SAID]


def test_request_that_is_refused_does_not_come_and_the_next_is_a_login():
    peer = stranger()
    peer.receive_data(b"".join(FRAMES), 0)
    said = events_with_logins(peer, answers=[None, None, b""])
    assert said == [("login", 1), ("login", 2), ("login", 3), *SAID[2:]]


def test_nothing_comes_while_a_login_is_under_way_and_all_of_it_after():
    peer = stranger()
    peer.receive_data(FRAMES[0] + FRAMES[1] + FRAMES[2][:9], 0)
    assert isinstance(next(peer.events()), Login)
    assert next(peer.events(), None) is None
    peer.receive_data(FRAMES[2][9:] + FRAMES[3], 0)
    assert next(peer.events(), None) is None
    peer.accept()
    peer.receive_data(FRAMES[4], 0)
    assert events_with_logins(peer, answers=[]) == SAID[:5]


def test_signed_requests_of_the_same_user_need_one_login():
    peer = stranger()
    peer.receive_data(b"".join(SIGNED * 40), 0)
    assert events_with_logins(peer, answers=[SECRET]) == [("login", 1), *SAID * 40]


@given(st.lists(st.sampled_from([0, 1, 2, 3, 4, 5]), max_size=12), st.integers(1, 400))
def test_each_request_that_the_user_did_not_sign_is_a_login_of_its_own(numbers, size):
    """An unsigned one is refused here, one of another user accepted."""
    kinds = [(number, (FRAMES[number], SIGNED[number], signed(FRAMES[number], BOB))) for number in numbers]
    data, expected, user = b"", [], None
    for place, (number, frames) in enumerate(kinds):
        which = (place + number) % 3
        data += frames[which]
        if which != user or which == 0:
            expected.append(("login", SAID[number][1]))
        if which:
            expected.append(SAID[number])
        user = which
    secrets = [None, SECRET, BOB.secret_key.encode()]
    peer, found = stranger(), []
    for start in range(0, len(data), size):
        peer.receive_data(data[start : start + size], 0)
        while (event := next(peer.events(), None)) is not None:
            if isinstance(event, Login):
                found.append(("login", event.request.opaque))
                user = event.request.ext.get("AccessKey", "")
                secret = secrets[["", "ann", "bob"].index(user)]
                peer.refuse() if secret is None else peer.accept(secret)
            elif isinstance(event, SendRun):
                found += [("send", event.batch.tag[i]) for i in range(event.count)]
                event.release()
            else:
                found.append((event.code, event.opaque))
    assert found == expected


def test_body_and_fields_that_were_changed_on_the_way_are_noticed():
    for damage in ((b"hello", b"hallo"), (b'"topic":"T"', b'"topic":"U"')):
        peer = let_in(stranger(), SECRET, signed(request_frame(105), ANN))
        peer.receive_data(signed(request_frame(34, b"hello", topic="T"), ANN).replace(*damage), 0)
        assert isinstance(next(peer.events()), Login)


def test_answers_of_a_peer_need_no_signature():
    peer = let_in(stranger(), SECRET, signed(request_frame(105), ANN))
    peer.receive_data(request_frame(0, opaque=8, flag=1) + SIGNED[2], 0)
    assert said_by(peer) == [(0, 8), SAID[2]]
