from __future__ import annotations

import asyncio
import socket

import pytest

from gateway.net import connection_table
from gateway.net.connection_table import ConnectionTable


class Connection:
    door = "test"
    bytes_in = 0

    def __init__(self, table):
        self.table = table
        self.conn_id = table.next_id()
        self.end_reason = ""
        self.ends = []
        table.add(self)

    def fileno(self):
        return -1

    def close(self):
        self.ends.append("close")

    def abort(self):
        self.ends.append("abort")
        self.table.discard(self)


def test_numbers_go_up_and_are_not_given_twice():
    table = ConnectionTable()
    first, second = Connection(table), Connection(table)
    first.abort()
    assert [second.conn_id, Connection(table).conn_id] == [2, 3]
    assert len(table) == 2


def test_all_are_closed_even_if_closing_takes_them_out():
    table = ConnectionTable()
    connections = [Connection(table) for _ in range(3)]
    emptied = []
    table.on_empty = lambda: emptied.append(len(table))
    table.close_all()
    table.abort_all()
    table.discard(connections[0])
    assert all(connection.ends == ["close", "abort"] for connection in connections)
    assert emptied == [0]


class Sending(Connection):
    """Sends something each time that it is looked at, and leaves after some times."""

    def __init__(self, table, times):
        super().__init__(table)
        self.times = times

    @property
    def bytes_in(self):
        self.times -= 1
        if not self.times:
            asyncio.get_running_loop().call_soon(self.table.discard, self)
        return -self.times


@pytest.mark.asyncio
async def test_those_that_are_behind_are_waited_for_while_they_move_and_others_for_some_time(monkeypatch):
    monkeypatch.setattr(connection_table, "LOOK_S", 0.001)
    table = ConnectionTable()
    await table.until_empty(60, 60)
    Sending(table, 5)
    await table.until_empty(0, 60)
    assert len(table) == 0
    Connection(table)
    await table.until_empty(0, 60)
    assert len(table) == 1
    moving = Sending(table, 1 << 30)
    await table.until_empty(0, 0.01)
    assert len(table) == 2
    table.discard(moving)
    asyncio.get_running_loop().call_later(0.01, table.abort_all)
    await table.until_empty(60, 0)
    assert len(table) == 0


def test_what_a_peer_has_of_what_it_was_sent_is_told_by_the_system():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as peer:
        ours, _ = server.accept()
        with ours:
            before = connection_table._taken_bytes(ours.fileno())
            ours.sendall(b"x" * 1_000)
            peer.recv(1_000, socket.MSG_WAITALL)
            peer.sendall(b"y")  # with the acknowledgement
            ours.recv(1)
            assert connection_table._taken_bytes(ours.fileno()) == before + 1_000
    here, there = socket.socketpair()
    with here, there:
        assert connection_table._taken_bytes(here.fileno()) == 0
    assert connection_table._taken_bytes(-1) == 0
