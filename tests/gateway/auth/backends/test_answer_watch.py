from __future__ import annotations

import socket
import threading

import pytest

from gateway.auth.backends.answer_watch import AnswerWatch, find_received

BYTES_MAX = 100_000


@pytest.fixture
def ends():
    """Both ends of a connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        far, _ = listener.accept()
    with near, far:
        yield near, far


def read_all(near):
    """Return how many bytes come until the end."""
    count = 0
    try:
        while data := near.recv(65_536):
            count += len(data)
    except ConnectionResetError:
        pass
    return count


def test_answer_that_does_not_come_is_ended(ends):
    near, _ = ends
    with AnswerWatch(50, BYTES_MAX).watch(near.fileno()) as watched:
        assert near.recv(1) == b""
    assert watched.why == "it takes too long"


def test_answer_without_end_is_ended(ends):
    near, far = ends

    def flood():
        try:
            while True:
                far.sendall(b"x" * 65_536)
        except OSError:
            stopped.set()

    stopped = threading.Event()
    with AnswerWatch(600_000, BYTES_MAX).watch(near.fileno()) as watched:
        threading.Thread(target=flood, daemon=True).start()
        read_all(near)
    assert watched.why == f"it sends more than {BYTES_MAX} bytes"
    assert stopped.wait(10)


def test_connection_stays_where_its_answers_are_short_and_each_is_measured_by_itself(ends):
    near, far = ends
    watch = AnswerWatch(600_000, BYTES_MAX)
    for _ in range(5):
        with watch.watch(near.fileno()) as watched:
            far.sendall(b"x" * (BYTES_MAX // 2))
            assert len(near.recv(BYTES_MAX // 2, socket.MSG_WAITALL)) == BYTES_MAX // 2
        watched.look(0)
        assert watched.why == ""
    assert find_received(near) == 5 * (BYTES_MAX // 2)
    far.sendall(b"still")
    assert near.recv(5, socket.MSG_WAITALL) == b"still"


def test_thread_ends_and_another_looks_at_the_next_question(ends, monkeypatch):
    monkeypatch.setattr("gateway.auth.backends.answer_watch.REST_S", 0.01)
    near, _ = ends
    before = threading.enumerate()
    watch = AnswerWatch(600_000, BYTES_MAX)
    with watch.watch(near.fileno()):
        (thread,) = [one for one in threading.enumerate() if one not in before]
    thread.join(10)
    assert not thread.is_alive()
    watch = AnswerWatch(20, BYTES_MAX)
    with watch.watch(near.fileno()) as watched:
        assert near.recv(1) == b""
    assert watched.why


def test_bytes_of_a_unix_socket_are_not_known_and_its_time_is_bounded():
    near, far = socket.socketpair()
    with near, far:
        assert find_received(near) == 0
        with AnswerWatch(50, BYTES_MAX).watch(near.fileno()) as watched:
            assert near.recv(1) == b""
        assert watched.why == "it takes too long"
