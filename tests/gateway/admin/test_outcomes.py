from __future__ import annotations

import asyncio
from types import SimpleNamespace

import aio_pika
import pytest

from core.pop.told_endings import ToldEndings
from core.properties import encode_properties
from gateway.admin import outcomes
from gateway.admin.outcomes import NOT_KEPT, letter_of
from gateway.amqp.queue_pops import GROUP
from lmq import Producer, TransactionProducer, TransactionState
from tests.support.admin import managed_gateway
from tests.support.admin_clients import publish, until_amqp_is_left
from tests.support.fates import fate_of, fate_when_done
from tests.support.waiting import WAIT_S

pytestmark = pytest.mark.asyncio

DEAD = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}


@pytest.fixture
def earlier_version(monkeypatch):
    """Have the journal of pop queues as versions wrote it that did not say how messages ended."""
    monkeypatch.setattr(ToldEndings, "begin", lambda *_: None)
    for module in ("pop_service", "pop_queue"):
        monkeypatch.setattr(f"core.pop.{module}.code_of", lambda *_: 0)


async def _ids(client, queue):
    found = await client.get("/api/lmq/messages", params={"queue": f"%LMQ%amqp%|2f%{queue}", "at_ms": 0})
    return [item["id"] for item in found.json()["items"]]


async def _declare(client, name, arguments):
    answer = await client.put(f"/api/queues/%2F/{name}", json={"durable": True, "arguments": arguments})
    assert answer.status_code == 201


async def _get(client, name, mode):
    asked = {"count": 1, "ackmode": mode, "encoding": "auto"}
    assert len((await client.post(f"/api/queues/%2F/{name}/get", json=asked)).json()) == 1


async def test_what_became_of_each_message_of_a_queue_is_told(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        await _declare(client, "jobs", {"x-max-length": 4})
        for value in range(5):
            await publish(client, "amq.default", "jobs", str(value))
        await _get(client, "jobs", "ack_requeue_false")
        await _get(client, "jobs", "reject_requeue_false")
        await client.get("/api/queues/%2F/jobs")
        numbers = await _ids(client, "jobs")
        found = [await fate_of(client, number) for number in numbers]
        assert [one["outcome"] for one in found] == [
            "dropped: its queue was full",
            "acknowledged",
            "rejected",
            None,
            None,
        ]
        assert found[0]["from_ms"] == found[0]["until_ms"] > 0
        await client.delete("/api/queues/%2F/jobs/contents")
        found = [await fate_of(client, number) for number in numbers]
        assert [one["outcome"] for one in found[3:]] == ["purged", "purged"]
    async with managed_gateway(tmp_path) as (_, client):  # as before, but for when and by which consumer
        after = [await fate_of(client, number) for number in numbers]
    nobody = {"until_ms": 0, "by": "", "by_is_sure": False}
    ended = [{**one, **nobody} if one["outcome"] == "acknowledged" else one for one in found]
    assert after == ended


async def test_letters_and_what_expired_are_told_over_a_restart_also_where_the_letter_is_gone(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        await _declare(client, "jobs", DEAD)
        await _declare(client, "dead", {})
        await _declare(client, "brief", {"x-message-ttl": 0})
        for value in ("good", "bad"):
            await publish(client, "amq.default", "jobs", value)
        await publish(client, "amq.default", "brief", "x")
        asked = {"count": 1, "ackmode": "ack_requeue_false", "encoding": "auto"}
        assert (await client.post("/api/queues/%2F/brief/get", json=asked)).json() == []
        await _get(client, "jobs", "ack_requeue_false")
        await _get(client, "jobs", "reject_requeue_false")
        numbers = [*await _ids(client, "jobs"), *await _ids(client, "brief")]
        await fate_when_done(client, numbers[1])  # it is, once its letter is safe
    for _ in range(2):
        async with managed_gateway(tmp_path) as (_, client):
            found = [await fate_of(client, number) for number in numbers]
            await client.delete("/api/queues/%2F/dead")
        assert [one["outcome"] for one in found] == ["acknowledged", "rejected", "expired"]
        assert found[1]["from_ms"] > 0


@pytest.mark.usefixtures("earlier_version")
async def test_a_dead_letter_and_its_message_name_each_other(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        await _declare(client, "jobs", DEAD)
        await _declare(client, "dead", {})
        for value in ("other", "bad"):
            await publish(client, "amq.default", "jobs", value)
        await _get(client, "jobs", "ack_requeue_false")
        await _get(client, "jobs", "reject_requeue_false")
        _, number = await _ids(client, "jobs")
        fate = await fate_when_done(client, number)  # it is, once its letter is safe
        (letter,) = await _ids(client, "dead")
        assert (fate["outcome"], fate["letter"]["id"]) == ("rejected", letter)
        told = (await client.get(f"/api/lmq/messages/{letter}")).json()
        assert (told["letter_of"], told["body"]) == (number, "bad")
    async with managed_gateway(tmp_path) as (_, client):  # what was noted is gone, what is in the log is not
        first, number = await _ids(client, "jobs")
        fate = await fate_of(client, number)
        assert (fate["outcome"], fate["letter"]["id"], fate["letter"]["reason"]) == ("rejected", letter, "rejected")
        fate = await fate_of(client, first)
        assert fate["outcome"] == "acknowledged, rejected or purged"
        assert fate["note"] == f"no dead letter of it is found; {NOT_KEPT}"


async def _queues_when_done(client, number):
    """Return what is told of the queues of a message once all readers are done with it: when its letters are safe."""
    async with asyncio.timeout(WAIT_S):
        while True:
            queues = (await client.get(f"/api/lmq/messages/{number}")).json()["queues"]
            if all(queue["readers"][0]["stage"] == "done" for queue in queues):
                return queues
            await asyncio.sleep(0.001)


async def test_a_message_of_several_queues_has_in_each_the_letter_of_that_queue(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        await _declare(client, "dead", {})
        for name in ("one", "two"):
            await _declare(client, name, DEAD)
            await client.post(f"/api/bindings/%2F/e/amq.fanout/q/{name}", json={})
        await publish(client, "amq.fanout", "", "x")
        await _get(client, "two", "reject_requeue_false")
        (number,) = await _ids(client, "one")
        while not (letters := await _ids(client, "dead")):
            await asyncio.sleep(0)
        await _get(client, "one", "ack_requeue_false")
        found = {queue["name"]: queue["readers"][0] for queue in await _queues_when_done(client, number)}
        assert {name: one["outcome"] for name, one in found.items()} == {"one": "acknowledged", "two": "rejected"}
        assert (found["one"]["letter"], found["two"]["letter"]["id"]) == (None, letters[0])
        await publish(client, "amq.fanout", "", "y")
        await _get(client, "one", "reject_requeue_false")
        await _get(client, "two", "reject_requeue_false")
        while len(letters := await _ids(client, "dead")) < 3:
            await asyncio.sleep(0)
        queues = await _queues_when_done(client, (await _ids(client, "one"))[1])
        assert {queue["readers"][0]["letter"]["id"] for queue in queues} == {*letters[1:]}


async def test_a_queue_with_priorities_tells_nothing_of_one_before_it(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        for value in ("of the first", "of the second"):
            await _declare(client, "jobs", {"x-max-priority": 3})
            await publish(client, "amq.default", "jobs", value, {"priority": 2})
            if value == "of the first":
                await client.delete("/api/queues/%2F/jobs")
        (queue,) = (await client.get("/api/lmq/messages/0")).json()["queues"]
        assert queue["readers"] == []


@pytest.mark.usefixtures("earlier_version")
async def test_what_waits_at_a_restart_is_known_to_the_end_and_of_the_rest_it_is_told_how_it_may_have_ended(tmp_path):
    limits = {"x-max-length": 9, "x-message-ttl": 3_600_000, "x-queue-type": "quorum", "x-delivery-limit": 3}
    async with managed_gateway(tmp_path) as (_, client):
        await _declare(client, "plain", {})
        await _declare(client, "strict", limits)
        for queue in ("plain", "strict"):
            for value in range(3):
                await publish(client, "amq.default", queue, str(value))
            await _get(client, queue, "ack_requeue_false")
    async with managed_gateway(tmp_path) as (_, client):
        for queue in ("plain", "strict"):
            await _get(client, queue, "ack_requeue_false")
            await _get(client, queue, "reject_requeue_false")
        plain, strict = [
            [await fate_of(client, number) for number in await _ids(client, queue)] for queue in ("plain", "strict")
        ]
    for before, acknowledged, rejected in (plain, strict):
        assert (acknowledged["outcome"], rejected["outcome"]) == ("acknowledged", "rejected")
        assert NOT_KEPT in before["note"]
        assert before["from_ms"] > 0
        assert before["until_ms"] == 0
    assert plain[0]["outcome"] == "acknowledged, rejected or purged"
    assert strict[0]["outcome"] == "acknowledged, rejected, purged or given up after too many attempts"
    assert strict[0]["note"].startswith("its time is over at 20")


@pytest.mark.usefixtures("earlier_version")
async def test_what_may_have_expired_before_a_restart_is_not_said_to_be_acknowledged(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        await _declare(client, "brief", {"x-message-ttl": 0})
        await publish(client, "amq.default", "brief", "x")
        asked = {"count": 1, "ackmode": "ack_requeue_false", "encoding": "auto"}
        assert (await client.post("/api/queues/%2F/brief/get", json=asked)).json() == []
        (number,) = await _ids(client, "brief")
        assert (await fate_of(client, number))["outcome"] == "expired"
    async with managed_gateway(tmp_path) as (_, client):
        (number,) = await _ids(client, "brief")
        fate = await fate_of(client, number)
    assert fate["outcome"] == "acknowledged, rejected, purged or expired"
    assert fate["note"].startswith("its time was over at 20")


@pytest.mark.usefixtures("earlier_version")
async def test_only_a_message_that_enough_others_followed_may_have_been_dropped_from_a_full_queue(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        await _declare(client, "short", {"x-max-length": 2})
        await _declare(client, "small", {"x-max-length-bytes": 1_000})
        for value in range(3):
            await publish(client, "amq.default", "short", str(value))
        await publish(client, "amq.default", "small", "x")
        for queue in ("short", "short", "small"):
            await _get(client, queue, "ack_requeue_false")
    async with managed_gateway(tmp_path) as (_, client):
        fates = [await fate_of(client, number) for number in await _ids(client, "short")]
        dropped = "acknowledged, rejected, purged or dropped as its queue was full"
        assert [one["outcome"] for one in fates] == [dropped] + ["acknowledged, rejected or purged"] * 2
        (number,) = await _ids(client, "small")
        assert (await fate_of(client, number))["outcome"] == dropped  # its bytes may have been too many


@pytest.mark.usefixtures("earlier_version")
async def test_what_was_done_before_its_time_was_over_has_not_expired(tmp_path, monkeypatch):
    async with managed_gateway(tmp_path) as (_, client):
        await _declare(client, "brief", {"x-message-ttl": 60_000})
        await publish(client, "amq.default", "brief", "x", {"expiration": "30000"})
        await _get(client, "brief", "ack_requeue_false")
    async with managed_gateway(tmp_path) as (_, client):
        (number,) = await _ids(client, "brief")
        stored_at_ms = (await client.get(f"/api/lmq/messages/{number}")).json()["stored_at_ms"]
        trail = client._transport.app.state.view.trail  # the gateway was quick to start, and looked at places then
        trail.note((b"%LMQ%amqp%|2f%brief", GROUP), stored_at_ms + 29_000, 1, 1)
        monkeypatch.setattr(outcomes, "time", SimpleNamespace(time_ns=lambda: (stored_at_ms + 50_000) * 1_000_000))
        fate = await fate_of(client, number)
        assert fate["outcome"] == "acknowledged, rejected or purged"
        assert fate["note"].startswith("its time was over at 20")
        assert (fate["from_ms"], fate["until_ms"]) == (stored_at_ms, stored_at_ms + 29_000)


async def test_it_is_told_which_consumer_has_a_message_and_when_one_was_done_with_it(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        view = client._transport.app.state.view
        host, port = gateway.listening["amqp"]
        connection = await aio_pika.connect(f"amqp://guest:guest@{host}:{port}/")
        channel = await connection.channel()
        queue = await channel.declare_queue("jobs", durable=True)
        came = asyncio.Queue()
        await queue.consume(came.put, consumer_tag="worker")
        await view.activity.look()
        await publish(client, "amq.default", "jobs", "1")
        (number,) = await _ids(client, "jobs")
        fate = await fate_of(client, number)
        assert (fate["stage"], fate["outcome"]) == ("taken", None)
        assert fate["by"].startswith("consumer worker of guest at 127.0.0.1:")
        await (await came.get()).ack()
        await queue.declare()  # the acknowledgement came before its answer
        await view.activity.look()
        fate = await fate_of(client, number)
        assert (fate["stage"], fate["outcome"]) == ("done", "acknowledged")
        assert 0 < fate["from_ms"] <= fate["until_ms"]
        assert fate["by"].startswith("consumer worker of guest at 127.0.0.1:")
        await connection.close()


async def test_of_several_consumers_it_is_told_which_one_had_the_message_while_its_channel_remembers(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        view = client._transport.app.state.view
        host, port = gateway.listening["amqp"]
        connection = await aio_pika.connect(f"amqp://guest:guest@{host}:{port}/")
        came = asyncio.Queue()
        for tag in ("first", "second"):
            channel = await connection.channel()
            await channel.set_qos(prefetch_count=1)
            queue = await channel.declare_queue("jobs", durable=True)
            await queue.consume(came.put, consumer_tag=tag)
        for value in ("1", "2"):
            await publish(client, "amq.default", "jobs", value)
        numbers = await _ids(client, "jobs")
        for number in numbers:
            message = await came.get()
            await (message.ack() if message.body == b"1" else message.reject())
            fate = await fate_when_done(client, number)
            assert fate["by"].startswith(f"consumer {message.consumer_tag} of guest at 127.0.0.1:")
            assert fate["outcome"] == ("acknowledged" if message.body == b"1" else "rejected")
        await connection.close()
        await until_amqp_is_left(gateway)
        await view.activity.look()
        assert [(await fate_of(client, number))["by"] for number in numbers] == ["", ""]


async def test_a_half_message_says_whether_its_transaction_ended_and_a_delayed_one_that_it_was_handed_on(tmp_path):
    async def unknown(*_):
        return TransactionState.UNKNOWN

    async def commit(_):
        return TransactionState.COMMIT

    async with managed_gateway(tmp_path) as (gateway, client):
        namesrv = ":".join(map(str, gateway.listening["namesrv"]))
        async with TransactionProducer(namesrv, "payers", check=unknown) as payers:
            sent = [await payers.send_in_transaction("Pay", b"x", execute) for execute in (unknown, commit)]
        open_one, ended = [one.sent.msg_id for one in sent]
        fate = await fate_when_done(client, ended)
        assert fate["outcome"] == "its transaction was committed"
        assert (await fate_of(client, open_one))["stage"] == "waits"
        async with Producer(namesrv) as producer:
            later = (await producer.send("Later", b"x", delay_level=1)).msg_id
        async with asyncio.timeout(WAIT_S):
            while not (readers := (await client.get(f"/api/lmq/messages/{later}")).json()["queues"][0]["readers"]):
                await asyncio.sleep(0.01)
        assert readers[0]["outcome"].startswith("handed on at its time")


async def test_rocketmqs_own_name_for_the_message_a_letter_is_of_is_read_too():
    origin = b"7F00000100002A9F" + b"%016X" % 4_711
    assert letter_of(encode_properties([(b"ORIGIN_MESSAGE_ID", origin)])) == 4_711
    assert letter_of(encode_properties([(b"ORIGIN_MESSAGE_ID", b"nonsense")])) is None
    assert letter_of(encode_properties([(b"LMQ_LETTER_OF", b"12")])) == 12
    assert letter_of(encode_properties([(b"LMQ_LETTER_OF", b"12.3.4")])) == 12
    assert letter_of(b"a\x01b\x02") is None
