from __future__ import annotations

from gateway.rocketmq.client import Client
from lmq.remoting.commands import Command, encode_command


class Output:
    conn_id = 7
    is_writable = True

    def __init__(self) -> None:
        self.written = b""

    def write(self, data: bytes) -> None:
        self.written += data


def test_a_client_is_sent_commands_by_its_connection():
    output = Output()
    client = Client(output)
    assert (client.client_id, client.consumer_groups, client.producer_groups) == ("", set(), set())
    command = Command(40, ext={"consumerGroup": "g"})
    client.send(command)
    assert output.written == encode_command(command)
