from __future__ import annotations

import asyncio
import json
import re

import pytest

from lmq import (
    ClosedError,
    Producer,
    PullConsumer,
    RequestTimeoutError,
    SimpleConsumer,
    TransactionProducer,
)
from lmq.client import Client
from lmq.remoting.commands import answer, encode_json
from tests.support.waiting import until

pytestmark = pytest.mark.asyncio

GREETING, FAREWELL = 34, 35
MEMBERS = pytest.mark.parametrize(("kind", "role"), [(Producer, "producer"), (PullConsumer, "consumer")])


@pytest.fixture
def scripted(server):
    """A name server and broker in one, for light queues."""
    table = {"b": {"brokerAddrs": {"0": server.address}, "brokerName": "b"}}
    server.on[106] = lambda request: answer(request, 0, body=encode_json({"brokerAddrTable": table}))
    server.on[310] = lambda request: answer(request, 0, ext={"queueOffset": "7"})
    server.on[30] = lambda request: answer(request, 0, ext={"offset": "7"})
    return server


async def ask(member):
    await (member.send("%LMQ%x", b"x") if isinstance(member, Producer) else member.max_offset("%LMQ%x"))


@MEMBERS
async def test_a_member_says_who_it_is_and_goodbye(scripted, kind, role):
    async with kind(scripted.address, "my-group", client_id="me") as member:
        await ask(member)
    await until(lambda: scripted.requests[-1].code == FAREWELL)
    first = next(request for request in scripted.requests if request.code == GREETING)
    said = json.loads(bytes(first.body))
    assert said["clientID"] == "me"
    assert [group["groupName"] for group in said[f"{role}DataSet"]] == ["my-group"]
    assert not said[{"producer": "consumerDataSet", "consumer": "producerDataSet"}[role]]
    assert scripted.requests[-1].ext == {"clientID": "me", f"{role}Group": "my-group"}


@MEMBERS
async def test_goodbye_is_not_said_to_a_broker_that_was_lost(scripted, kind, role):
    async with kind(scripted.address) as member:
        await ask(member)
        before = scripted.connections
        scripted.drop_all()
        async with asyncio.timeout(20):
            while any(client.is_open for client in member._routes.clients()):
                await asyncio.sleep(0.001)
    assert scripted.connections == before


@MEMBERS
async def test_a_member_that_was_stopped_asks_nothing(scripted, kind, role):
    member = kind(scripted.address)
    await member.start()
    await ask(member)
    await member.stop()
    with pytest.raises(ClosedError):
        await ask(member)


@MEMBERS
async def test_members_are_told_apart(scripted, kind, role):
    assert kind(scripted.address).client_id != kind(scripted.address).client_id


@pytest.mark.parametrize("group", ["", "a b", "a.b", "größe", "a\n", "g" * 256, None])
@pytest.mark.parametrize("kind", [Producer, PullConsumer, SimpleConsumer])
async def test_a_group_that_brokers_would_not_take_is_refused(kind, group):
    with pytest.raises(ValueError, match=r"^group .*: the name has 1 to 255 characters, which are letters, digits"):
        kind("127.0.0.1:9876", group)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"namesrv": None}, "namesrv=None is of type NoneType; it is to be of type str"),
        ({"namesrv": ["a:1"]}, "namesrv=['a:1'] is of type list; it is to be of type str"),
        ({"namesrv": "http://a:1"}, "'http://a:1' is not HOST:PORT"),
        ({"timeout_s": 0}, "timeout_s=0; it is to be a number of seconds over 0"),
        ({"timeout_s": "3"}, "timeout_s='3' is of type str; it is to be of type int or float"),
        ({"client_id": 5}, "client_id=5 is of type int; it is to be of type str or None"),
        ({"tls": True}, "tls=True is of type bool; it is to be of type SSLContext or None"),
        ({"access_key": "u", "secret_key": None}, "secret_key=None is of type NoneType; it is to be of type str"),
    ],
)
@pytest.mark.parametrize("kind", [Producer, PullConsumer, SimpleConsumer])
async def test_what_a_member_is_made_of_is_looked_at_at_once(kind, changes, said):
    with pytest.raises((TypeError, ValueError), match=rf"^{re.escape(said)}$"):
        kind(**{"namesrv": "127.0.0.1:1", "group": "g"} | changes)


async def test_a_member_that_cannot_start_leaves_no_connection(scripted):
    broker = {"brokerAddrs": {"0": scripted.address}, "brokerName": "b"}
    queues = {"brokerName": "b", "readQueueNums": 2, "writeQueueNums": 2, "perm": 6}
    route = {"brokerDatas": [broker], "queueDatas": [queues]}
    scripted.on[105] = lambda request: answer(request, 0, body=encode_json(route))
    scripted.on[GREETING] = lambda request: None if not request.is_one_way else answer(request, 0)

    async def look_up(_message):
        raise AssertionError

    with pytest.raises(RequestTimeoutError):
        async with TransactionProducer(scripted.address, "g", check=look_up, timeout_s=0.1):
            raise AssertionError("it did not start")
    await until(lambda: not scripted.has_connections)


@MEMBERS
async def test_a_member_whose_stop_is_cancelled_leaves_no_connection(scripted, kind, role, monkeypatch):
    member = kind(scripted.address)
    await member.start()
    await ask(member)
    reached, never = asyncio.Event(), asyncio.Event()

    async def hang(_client, _command):
        reached.set()
        await never.wait()

    monkeypatch.setattr(Client, "send_one_way", hang)
    stopping = asyncio.create_task(member.stop())
    await reached.wait()
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    await until(lambda: not scripted.has_connections)
