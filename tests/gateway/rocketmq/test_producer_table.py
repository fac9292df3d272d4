from __future__ import annotations

from gateway.rocketmq.client import Client
from gateway.rocketmq.producer_table import ProducerTable


class Output:
    def __init__(self, conn_id: int) -> None:
        self.conn_id = conn_id
        self.is_writable = True

    def write(self, data: bytes) -> None:
        raise AssertionError(data)


def test_producers_of_a_group_are_taken_in_turn_and_those_that_do_not_read_are_passed_by():
    table = ProducerTable()
    clients = [Client(Output(number)) for number in range(3)]
    for client in clients:
        table.set_groups(client, {"g", f"g{client.output.conn_id}"})
    assert [table.take_next("g") for _ in range(4)] == [*clients, clients[0]]
    clients[1].output.is_writable = False
    assert [table.take_next("g") for _ in range(3)] == [clients[2], clients[0], clients[2]]
    for client in clients:
        client.output.is_writable = False
    assert table.take_next("g") is None
    assert table.has_members("g")


def test_a_producer_is_in_the_groups_that_it_named_last():
    table = ProducerTable()
    client = Client(Output(1))
    table.set_groups(client, {"a", "b"})
    table.set_groups(client, {"b", "c"})
    assert [table.has_members(group) for group in "abc"] == [False, True, True]
    assert (table.take_next("a"), table.members("b")) == (None, [client])
    table.set_groups(client, set())
    assert not any(table.has_members(group) for group in "abc")
    assert client.producer_groups == set()
