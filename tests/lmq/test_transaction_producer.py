from __future__ import annotations

import asyncio

import pytest
import pytest_asyncio

from gateway.settings.models import AmqpSettings, MqttSettings, RocketmqSettings
from lmq import (
    MessageRefusedError,
    Producer,
    PullConsumer,
    TransactionProducer,
    TransactionState,
    mqtt_queue,
    transaction_producer,
)
from lmq.remoting.commands import FLAG_ONE_WAY, Command, answer, encode_json
from tests.support.gateway import ANY_PORT, running_gateway

pytestmark = pytest.mark.asyncio

COMMIT, ROLLBACK, UNKNOWN = TransactionState.COMMIT, TransactionState.ROLLBACK, TransactionState.UNKNOWN


@pytest_asyncio.fixture
async def gateway(tmp_path):
    """A gateway that asks soon."""
    rocketmq = RocketmqSettings(
        namesrv=ANY_PORT, broker=ANY_PORT, transaction_timeout_ms=50, transaction_check_interval_ms=200
    )
    off = "off"
    async with running_gateway(
        tmp_path / "data", mqtt=MqttSettings(listen=off), amqp=AmqpSettings(listen=off), rocketmq=rocketmq
    ) as gateway:
        yield gateway


class Ledger:
    """What transactions did, and what is said of them when a broker asks."""

    def __init__(self, *states: TransactionState | Exception) -> None:
        self.states = list(states)
        self.asked = []
        self.sent = []

    async def check(self, message):
        self.asked.append(message)
        state = self.states.pop(0)
        if isinstance(state, Exception):
            raise state
        return state

    def ends(self, state):
        async def execute(sent):
            self.sent.append(sent)
            return state

        return execute


async def read(namesrv, queue, count, wait_s=5.0):
    """Return the bodies of the first messages of a queue, as many as come."""
    async with PullConsumer(namesrv) as consumer:
        bodies = []
        while len(bodies) < count:
            result = await consumer.pull(queue, len(bodies), wait_s=wait_s)
            if not result.messages:
                break
            bodies += [message.body for message in result.messages]
        return bodies


async def test_readers_get_what_is_committed_and_nothing_else(namesrv):
    ledger = Ledger()
    async with TransactionProducer(namesrv, "g", check=ledger.check) as producer:
        results = [
            await producer.send_in_transaction("T", body, ledger.ends(state), queue_id=0, tags="t")
            for body, state in ((b"1", COMMIT), (b"2", ROLLBACK), (b"3", COMMIT))
        ]
    assert [(result.state, result.error) for result in results] == [(COMMIT, None), (ROLLBACK, None), (COMMIT, None)]
    assert [result.sent for result in results] == ledger.sent
    assert await read(namesrv, "T", 2) == [b"1", b"3"]
    assert ledger.asked == []


async def test_nobody_gets_a_message_while_its_transaction_runs(namesrv):
    async def execute(sent):
        assert sent.key
        assert await read(namesrv, "T", 1, wait_s=0.01) == []
        return COMMIT

    async with Producer(namesrv) as plain, TransactionProducer(namesrv, "g", check=Ledger().check) as producer:
        await plain.send("T", b"makes the topic", queue_id=1)
        await producer.send_in_transaction("T", b"x", execute, queue_id=0)
    assert await read(namesrv, "T", 1) == [b"x"]


async def test_a_broker_asks_until_it_is_told_and_the_message_comes_then(namesrv):
    ledger = Ledger(RuntimeError("the ledger is away"), UNKNOWN, COMMIT)
    async with TransactionProducer(namesrv, "g", check=ledger.check) as producer:
        result = await producer.send_in_transaction(
            "T", b"x", ledger.ends(UNKNOWN), queue_id=0, keys=["order", "1"], properties={"colour": "red"}
        )
        assert await read(namesrv, "T", 1) == [b"x"]
    assert [message.key for message in ledger.asked] == [result.sent.key] * 3
    message = ledger.asked[0]
    assert (message.topic, message.body, message.keys, message.properties["colour"]) == (
        "T",
        b"x",
        ["order", "1"],
        "red",
    )
    assert message.user_properties == {"colour": "red"}


async def test_what_a_transaction_raises_is_raised_and_the_broker_asks(namesrv):
    async def fails(sent):
        raise ValueError(sent.key)

    ledger = Ledger(COMMIT)
    async with TransactionProducer(namesrv, "g", check=ledger.check) as producer:
        with pytest.raises(ValueError, match=r"^[0-9A-F]{32}$"):
            await producer.send_in_transaction("T", b"x", fails, queue_id=0)
        assert await read(namesrv, "T", 1) == [b"x"]


async def test_another_producer_of_the_group_is_asked_after_the_first_is_gone(namesrv):
    first, second = Ledger(), Ledger(COMMIT)
    async with TransactionProducer(namesrv, "g", check=first.check) as producer:
        await producer.send_in_transaction("T", b"x", first.ends(UNKNOWN), queue_id=0, ask_after_s=0)
        await producer._routes.close()  # as if its process were killed
    async with TransactionProducer(namesrv, "g", check=second.check):
        assert await read(namesrv, "T", 1) == [b"x"]
    assert [message.body for message in second.asked] == [b"x"]


async def test_a_producer_that_lost_its_connection_is_there_again_to_be_asked(gateway, namesrv, monkeypatch):
    monkeypatch.setattr(transaction_producer, "STAY_S", 0.05)
    ledger = Ledger(*[COMMIT] * 3)
    async with TransactionProducer(namesrv, "g", check=ledger.check) as producer:
        await producer.send_in_transaction("T", b"x", ledger.ends(UNKNOWN), queue_id=0, ask_after_s=1)
        for connection in list(gateway.doors["rocketmq"].connections):
            connection.transport.abort()
        assert await read(namesrv, "T", 1) == [b"x"]
    assert len(ledger.asked) == 1


async def test_light_queues_get_what_is_committed(namesrv):
    ledger = Ledger()
    async with TransactionProducer(namesrv, "g", check=ledger.check) as producer:
        await producer.send_in_transaction("T", b"both", ledger.ends(COMMIT), dispatch="%LMQ%a")
        await producer.send_in_transaction("%LMQ%a", b"alone", ledger.ends(COMMIT))
    assert await read(namesrv, "%LMQ%a", 2) == [b"both", b"alone"]


async def test_a_transaction_into_the_topic_space(gateway, namesrv):
    queue = mqtt_queue("a/+")
    gateway.broker.bind_filter(b"a/+", queue.encode(), hides_dollar=True)
    ledger = Ledger()
    async with TransactionProducer(namesrv, "g", check=ledger.check) as producer:
        said = {"LMQ_TOPIC": "a/b"}
        await producer.send_in_transaction("LMQ_PARENT", b"x", ledger.ends(COMMIT), properties=said, queue_id=0)
    assert await read(namesrv, queue, 1) == [b"x"]


async def test_what_is_refused_runs_no_transaction(namesrv):
    ledger = Ledger()
    async with TransactionProducer(namesrv, "g", check=ledger.check) as producer:
        with pytest.raises(MessageRefusedError):
            await producer.send_in_transaction("bad name", b"x", ledger.ends(COMMIT))
        with pytest.raises(TypeError):
            await producer.send_in_transaction("T", "text", ledger.ends(COMMIT))
    assert ledger.sent == []


@pytest.fixture
def scripted(server):
    """A name server and broker in one that stores what it is sent."""
    broker = {"brokerAddrs": {"0": server.address}, "brokerName": "b", "cluster": "c"}
    queues = {"brokerName": "b", "readQueueNums": 2, "writeQueueNums": 2, "perm": 6}
    server.on[105] = lambda request: answer(
        request, 0, body=encode_json({"brokerDatas": [broker], "queueDatas": [queues]})
    )
    server.on[310] = lambda request: answer(
        request,
        0,
        ext={"msgId": "7F00000100002A9F000000000000BEEF", "queueId": "1", "queueOffset": "7", "transactionId": "K"},
    )
    return server


async def test_a_transaction_is_sent_and_ended_as_official_clients_do_it(scripted):
    ledger = Ledger()
    async with TransactionProducer(scripted.address, "g", check=ledger.check) as producer:
        await producer.send_in_transaction("T", b"x", ledger.ends(COMMIT), ask_after_s=60)
    send = next(request for request in scripted.requests if request.code == 310)
    said = dict(pair.split("\x01") for pair in send.ext["i"].split("\x02") if pair)
    assert (send.ext["f"], said["TRAN_MSG"], said["PGROUP"]) == ("4", "true", "g")
    assert said["CHECK_IMMUNITY_TIME_IN_SECONDS"] == "60"
    end = next(request for request in scripted.requests if request.code == 37)
    assert end.ext == {
        "topic": "T",
        "producerGroup": "g",
        "tranStateTableOffset": "7",
        "commitLogOffset": str(0xBEEF),
        "commitOrRollback": "8",
        "fromTransactionCheck": "false",
        "msgId": "K",
        "transactionId": "K",
        "bname": "b",
    }


async def test_a_broker_that_is_not_told_is_no_failure_of_the_transaction(scripted):
    scripted.on[37] = lambda request: answer(request, 2, "busy")
    ledger = Ledger()
    async with TransactionProducer(scripted.address, "g", check=ledger.check) as producer:
        result = await producer.send_in_transaction("T", b"x", ledger.ends(COMMIT))
    assert (result.state, result.error.code) == (COMMIT, 2)


@pytest.mark.parametrize("body", [b"", b"x" * 200, b"\0\0\0\x5b" + bytes(87)])
async def test_a_question_that_cannot_be_read_is_passed_by(scripted, body):
    ledger = Ledger()
    async with TransactionProducer(scripted.address, "g", check=ledger.check) as producer:
        scripted.ask(Command(39, flag=FLAG_ONE_WAY, ext={"tranStateTableOffset": "x"}, body=body))
        await producer.send("T", b"alive")
    assert ledger.asked == []


async def test_checks_under_way_end_with_the_producer(namesrv):
    ledger = Ledger()
    forever = asyncio.Event()

    async def check(message):
        ledger.asked.append(message)
        await forever.wait()

    producer = TransactionProducer(namesrv, "g", check=check)
    await producer.start()
    await producer.send_in_transaction("T", b"x", ledger.ends(UNKNOWN))
    async with asyncio.timeout(20):
        while not ledger.asked:
            await asyncio.sleep(0.01)
        await producer.stop()


@pytest.mark.parametrize("returned", [True, 8, "COMMIT"])
async def test_what_is_returned_and_is_no_state_is_told_and_the_broker_asks(namesrv, returned, caplog):
    ledger = Ledger(returned, None, COMMIT)
    async with TransactionProducer(namesrv, "g", check=ledger.check) as producer:
        result = await producer.send_in_transaction("T", b"x", ledger.ends(returned), queue_id=0)
        assert await read(namesrv, "T", 1) == [b"x"]
    assert (result.state, type(result.error)) == (UNKNOWN, TypeError)
    assert str(result.error).startswith(
        f"execute returned {returned!r}; it is to return one of TransactionState.COMMIT,"
    )
    assert f"check returned {returned!r}" in caplog.text
    assert len(ledger.asked) == 3


async def test_a_transaction_that_returns_nothing_is_unknown(namesrv):
    ledger = Ledger(COMMIT)
    async with TransactionProducer(namesrv, "g", check=ledger.check) as producer:
        result = await producer.send_in_transaction("T", b"x", ledger.ends(None), queue_id=0)
        assert (result.state, result.error) == (UNKNOWN, None)
        result = await producer.send_in_transaction("T", b"x", lambda sent: COMMIT, queue_id=0)
        assert (result.state, type(result.error)) == (UNKNOWN, TypeError)


async def test_functions_of_transactions_are_async(namesrv):
    def plain(message):
        return COMMIT

    with pytest.raises(TypeError, match=r"^check=.* is a def; it is awaited, so it is to be an async def$"):
        TransactionProducer(namesrv, "g", check=plain)
    async with TransactionProducer(namesrv, "g", check=Ledger().check) as producer:
        with pytest.raises(TypeError, match=r"^execute="):
            await producer.send_in_transaction("T", b"x", plain)
