from __future__ import annotations

import json

import pytest

from gateway.rocketmq.client import Client
from gateway.rocketmq.client_table import ClientTable
from gateway.rocketmq.errors import CommandRefusedError
from gateway.rocketmq.queue_locks import LOCK_MS
from lmq.remoting.commands import Command, decode_header


class Output:
    def __init__(self, conn_id: int) -> None:
        self.conn_id = conn_id
        self.commands: list[Command] = []

    def write(self, data: bytes) -> None:
        end = 8 + int.from_bytes(data[5:8], "big")
        self.commands.append(decode_header(data[4], data[8:end], data[end:]))


def subscription(topic: str, text: str = "*", version: int = 1, **more: object) -> dict[str, object]:
    return {"topic": topic, "subString": text, "subVersion": version, "expressionType": "TAG"} | more


def beat(table: ClientTable, client: Client, request: Command) -> None:
    """Take in all of a heartbeat."""
    for _ in table.heart_beat(client, request, may_read):
        pass


def may_read(topic: bytes) -> bool:
    return topic not in {b"Secret", b"%RETRY%g", b"%RETRY%other"}


def heart_beat(client_id: str, *subscriptions: dict[str, object], group: str = "g") -> Command:
    consumer = {"groupName": group, "consumeType": "CONSUME_PASSIVELY", "subscriptionDataSet": list(subscriptions)}
    said = {"clientID": client_id, "producerDataSet": [{"groupName": "p"}], "consumerDataSet": [consumer]}
    return Command(34, body=json.dumps(said).encode())


def members(table: ClientTable, group: str = "g") -> list[str]:
    answer = table.list_members(Command(38, ext={"consumerGroup": group}))
    return json.loads(answer.body)["consumerIdList"] if answer.code == 0 else []


@pytest.fixture
def table() -> ClientTable:
    return ClientTable()


def test_members_of_a_group_are_listed_until_they_go(table):
    first, second = Client(Output(1)), Client(Output(2))
    beat(table, first, heart_beat("b", subscription("T")))
    beat(table, second, heart_beat("a", subscription("T")))
    assert members(table) == ["a", "b"]
    table.drop(first)
    assert members(table) == ["a"]
    table.unregister(second, Command(35, ext={"clientID": "a", "consumerGroup": "g"}))
    assert members(table) == []
    assert table.list_members(Command(38, ext={"consumerGroup": "g"})).code == 1


def test_others_are_told_of_a_change_and_nobody_of_a_repetition(table):
    first, second = Client(Output(1)), Client(Output(2))
    beat(table, first, heart_beat("a", subscription("T")))
    beat(table, second, heart_beat("b", subscription("T")))
    first.output.commands.clear()
    beat(table, second, heart_beat("b", subscription("T")))
    assert first.output.commands == []
    table.drop(second)
    (told,) = first.output.commands
    assert (told.code, told.ext, told.is_one_way) == (40, {"consumerGroup": "g"}, True)


def test_subscriptions_are_those_of_the_newest_version(table):
    client = Client(Output(1))
    beat(table, client, heart_beat("a", subscription("T", "x || y", 5), subscription("U")))
    assert table.find_subscription("g", "T").wanted == {b"x", b"y"}
    assert table.find_subscription("g", "U").wanted is None
    beat(table, client, heart_beat("a", subscription("T", "old", 4)))
    assert table.find_subscription("g", "T").version == 5
    beat(table, client, heart_beat("a", subscription("T", "new", 6)))
    assert table.find_subscription("g", "T").wanted == {b"new"}
    for group, topic in (("g", "U"), ("other", "T")):
        with pytest.raises(CommandRefusedError) as caught:
            table.find_subscription(group, topic)
        assert caught.value.code == 24


def test_a_sql_subscription_is_taken_as_such_and_a_wrong_one_never_for_all(table):
    beat(table, Client(Output(1)), heart_beat("a", subscription("T", "a > 1", expressionType="SQL92")))
    assert table.find_subscription("g", "T").wanted.wants(b"a\x012\x02")
    beat(table, Client(Output(2)), heart_beat("b", subscription("T", "a >", version=9, expressionType="SQL92")))
    with pytest.raises(CommandRefusedError) as caught:
        table.find_subscription("g", "T")
    assert caught.value.code == 27


def test_a_client_is_no_member_of_a_group_for_what_it_may_not_read(table):
    beat(table, Client(Output(1)), heart_beat("a", subscription("T")))
    beat(table, Client(Output(2)), heart_beat("b", subscription("T"), subscription("Secret")))
    beat(table, Client(Output(3)), heart_beat("c", subscription("T"), subscription("%RETRY%other")))
    assert members(table) == ["a"]
    beat(table, Client(Output(4)), heart_beat("d", subscription("T"), subscription("%RETRY%g")))
    assert members(table) == ["a", "d"]


def lock(table: ClientTable, client: str, now_ms: int, *queues: int, topic: str = "T") -> list[int]:
    wanted = [{"topic": topic, "brokerName": "b", "queueId": queue} for queue in queues]
    body = json.dumps({"consumerGroup": "g", "clientId": client, "mqSet": wanted}).encode()
    held = json.loads(table.lock_queues(Command(41, body=body), may_read, now_ms).body)["lockOKMQSet"]
    return [queue["queueId"] for queue in held]


def test_a_queue_is_locked_for_one_client_until_it_is_given_back_or_not_renewed(table):
    assert lock(table, "a", 0, 0, 1) == [0, 1]
    assert lock(table, "b", 1, 1, 2) == [2]
    assert lock(table, "a", 10, 0) == [0]
    body = {"consumerGroup": "g", "clientId": "a", "mqSet": [{"topic": "T", "brokerName": "b", "queueId": 1}]}
    table.unlock_queues(Command(42, body=json.dumps(body | {"clientId": "b"}).encode()), may_read)
    assert lock(table, "b", 20, 1) == []
    table.unlock_queues(Command(42, body=json.dumps(body).encode()), may_read)
    assert lock(table, "b", 20, 1) == [1]
    assert lock(table, "b", LOCK_MS + 9, 0) == []
    assert lock(table, "b", LOCK_MS + 10, 0) == [0]
    assert lock(table, "b", LOCK_MS + 10, 0, topic="Secret") == []


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", b"[" * 100_000])
def test_a_body_that_is_no_object_is_refused(table, body):
    with pytest.raises(CommandRefusedError):
        beat(table, Client(Output(1)), Command(34, body=body))


@pytest.mark.parametrize(
    "said",
    [
        {"clientID": 5, "consumerDataSet": "x"},
        {"consumerDataSet": [5, {"groupName": None, "subscriptionDataSet": {}}, {}]},
        {"consumerDataSet": [{"groupName": "g", "subscriptionDataSet": [{"topic": 5, "subVersion": "x"}]}]},
        {"producerDataSet": [{"groupName": []}]},
    ],
)
def test_a_heartbeat_of_wrong_types_harms_nobody(table, said):
    beat(table, Client(Output(1)), Command(34, body=json.dumps(said).encode()))


BOMBS = [
    b"[" * 200_000,
    b'{"a":' * 100_000,
    b'{"clientID":' + b"9" * 9_000 + b"}",
    b'{"clientID":1e999}',
    b'{"clientID":"\\ud800","consumerDataSet":[{"groupName":"\\ud800"}]}',
    b'{"consumerDataSet":{"a":1},"producerDataSet":7}',
    b'{"consumerDataSet":[null,7,[],{"groupName":{"a":1},"subscriptionDataSet":[7,{"topic":[1],"subVersion":1e5}]}]}',
    b"\xff\xfe{}",
    b"null",
    b"",
]


@pytest.mark.parametrize("body", BOMBS)
@pytest.mark.parametrize("code", [34, 41, 42, 46, 200, 400, 401])
def test_bodies_that_are_bombs_are_answered_and_cost_nobody_the_connection(peer, code, body):
    answer = peer.ask(code, body)
    assert answer.code in {0, 1, 17, 29}
    assert answer.code == 0 or answer.remark
    assert not peer.transport.is_closed
    assert peer.ask(206).code == 0


def test_a_version_that_is_no_number_of_64_bits_is_none(table):
    huge = subscription("T", version=10**4000)
    beat(table, Client(Output(1)), heart_beat("a", huge))
    assert table.find_subscription("g", "T").version == 0
