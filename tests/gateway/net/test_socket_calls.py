from __future__ import annotations

import os
import socket

from gateway.net.socket_calls import acknowledge, send_part
from tests.support.connections import QUICK_ACKS, count_unacknowledged, tcp_pair


def receive(sock, size):
    got = bytearray()
    while len(got) < size:
        got += sock.recv(size - len(got))
    return bytes(got)


def test_socket_takes_what_it_has_room_for_and_nothing_when_full():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        assert send_part(ours.fileno(), b"hello") == 5
        assert receive(theirs, 5) == b"hello"
        data = bytes(range(256)) * 40_000
        taken = send_part(ours.fileno(), data)
        assert 0 < taken < len(data)
        assert send_part(ours.fileno(), data) == 0
        assert receive(theirs, taken) == data[:taken]


def test_socket_whose_peer_is_gone_takes_nothing():
    ours, theirs = socket.socketpair()
    with ours:
        theirs.close()
        assert send_part(ours.fileno(), b"hello") == 0


@QUICK_ACKS
def test_what_is_read_is_acknowledged_when_it_is_said():
    ours, theirs = tcp_pair()
    with ours, theirs:
        for _ in range(30):  # past those that the kernel acknowledges at once at the beginning
            theirs.send(b"hello")
            assert receive(ours, 5) == b"hello"
            acknowledge(ours.fileno())
            assert count_unacknowledged(theirs) == 0


def test_socket_that_is_not_tcp_stays_as_it_is():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        acknowledge(ours.fileno())
        os.write(ours.fileno(), b"hello")
        assert receive(theirs, 5) == b"hello"
