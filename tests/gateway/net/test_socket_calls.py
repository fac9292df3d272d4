from __future__ import annotations

import socket

from gateway.net.socket_calls import send_part


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
