from __future__ import annotations

from gateway.net.connection_table import ConnectionTable


class Connection:
    door = "test"

    def __init__(self, table):
        self.table = table
        self.conn_id = table.next_id()
        self.end_reason = ""
        self.ends = []
        table.add(self)

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
