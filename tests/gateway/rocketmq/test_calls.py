from __future__ import annotations

from gateway.rocketmq.calls import CALL_MS, CLIENT_CALLS_MAX, Calls
from gateway.rocketmq.client import Client
from lmq.remoting.commands import Command, answer


class Output:
    """Takes what a client is sent."""

    def __init__(self, conn_id: int) -> None:
        self.conn_id = conn_id
        self.peer = "peer"
        self.is_writable = True
        self.written: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.written.append(data)


def ask(calls: Calls, client: Client, ended: list, now_ms: int = 0) -> Command:
    command = Command(307)
    calls.call(client, command, ended.append, now_ms)
    return command


def test_each_call_ends_once_with_the_answer_of_its_own_client():
    calls, ended = Calls(), []
    one, two = Client(Output(1)), Client(Output(2))
    first = ask(calls, one, ended)
    second = ask(calls, one, ended)
    assert first.opaque != second.opaque
    ask(calls, two, ended)
    calls.settle(2, answer(first, 0))  # another client's
    assert ended == []
    response = answer(second, 0)
    calls.settle(1, response)
    calls.settle(1, response)
    assert ended == [response]
    calls.drop(1)
    assert ended == [response, None]
    calls.expire(CALL_MS - 1)
    assert len(ended) == 2
    calls.expire(CALL_MS)
    assert ended == [response, None, None]
    calls.settle(2, answer(first, 0))
    calls.drop(2)
    assert len(ended) == 3


def test_a_client_that_answers_nothing_is_asked_no_more():
    calls, ended = Calls(), []
    output = Output(1)
    client = Client(output)
    for _ in range(CLIENT_CALLS_MAX):
        ask(calls, client, ended)
    assert ended == []
    ask(calls, client, ended)
    assert ended == [None]
    assert len(output.written) == CLIENT_CALLS_MAX


def test_a_client_that_does_not_read_is_asked_nothing_more():
    calls, ended = Calls(), []
    output = Output(1)
    output.is_writable = False
    ask(calls, Client(output), ended)
    assert (ended, output.written) == ([None], [])
