"""The SDK against the gateway and against official name servers and brokers, 5 and 4.9: each test at each of them.

The official ones run where `make bench-peers` got their archives (build/peers/rocketmq, rocketmq-4.9) and a Java is
there.
"""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import time
import uuid

import pytest

from lmq import (
    ConsumeStatus,
    NotFoundError,
    OutMessage,
    Producer,
    PullConsumer,
    PushConsumer,
    ResponseError,
    SimpleConsumer,
    TransactionProducer,
    TransactionState,
)
from tests.benchmarks.scenarios.peers import FETCHED, JAVA_OPTIONS
from tests.support.gateway import GatewayProcess

START_S = 60
GATEWAY = "gateway"
POP = pytest.mark.parametrize("cluster", [GATEWAY, "rocketmq"], indirect=True)  # 4.9 has none
AS_OFFICIAL = {  # what the official brokers are set to
    "LMQ_ROCKETMQ__DELAY_LEVELS": "1s 1s 1s",
    "LMQ_ROCKETMQ__TRANSACTION_TIMEOUT_MS": "1000",
    "LMQ_ROCKETMQ__TRANSACTION_CHECK_INTERVAL_MS": "1000",
}

pytestmark = [pytest.mark.slow, pytest.mark.asyncio]


def spare_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Cluster:
    """An official name server and broker."""

    def __init__(self, home, archives):
        self._home = home
        self._archives = archives
        self._processes = []
        self.namesrv_port, self._port, self._ha_port = spare_ports(3)

    @property
    def namesrv(self):
        return f"127.0.0.1:{self.namesrv_port}"

    def start(self):
        self._launch("namesrv.NamesrvStartup", {"listenPort": self.namesrv_port})
        settings = {
            "brokerIP1": "127.0.0.1",
            "namesrvAddr": self.namesrv,
            "listenPort": self._port,
            "haListenPort": self._ha_port,
            "storePathRootDir": self._home / "store",
            "mappedFileSizeCommitLog": 16 << 20,
            "messageDelayLevel": "1s 1s 1s",
            "enableLmq": "true",
            "enableMultiDispatch": "true",
            "enablePropertyFilter": "true",
            "transactionTimeOut": 1_000,
            "transactionCheckInterval": 1_000,
            "transactionOpBatchInterval": 100,  # else it asks about those that were ended just before
        }
        self._launch("broker.BrokerStartup", settings)

    def _launch(self, program, settings):
        name = program.partition(".")[0]
        (self._home / f"{name}.conf").write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        (self._home / "conf").mkdir(exist_ok=True)
        (self._home / "conf" / f"logback_{name}.xml").write_text("<configuration/>")  # 4.9 does not start without
        command = ["java", *JAVA_OPTIONS, f"-Duser.home={self._home}", "-cp", f"{self._archives}/*"]
        command += [f"org.apache.rocketmq.{program}", "-c", f"{name}.conf"]
        log = self._home / f"{name}.log"
        with log.open("wb") as out:
            self._processes.append(
                subprocess.Popen(command, cwd=self._home, env={"ROCKETMQ_HOME": str(self._home)}, stdout=out)
            )
        deadline = time.monotonic() + START_S
        while "boot success" not in log.read_text():
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)  # noqa: TID251 - another process starts

    def stop(self):
        for process in self._processes:
            process.kill()
            process.wait()


class Ours:
    """The gateway in their place."""

    def __init__(self, home):
        self._process = GatewayProcess(home / "data", env=AS_OFFICIAL)

    @property
    def namesrv(self):
        return "{}:{}".format(*self._process.address("namesrv"))

    def start(self):
        self._process.start()

    def stop(self):
        assert self._process.stop() == 0
        assert not any("Traceback" in line for line in self._process.errors), "".join(self._process.errors)


@pytest.fixture(scope="module", params=[GATEWAY, "rocketmq", "rocketmq-4.9"])
def cluster(request, tmp_path_factory):
    if request.param == GATEWAY:
        ours = Ours(tmp_path_factory.mktemp(GATEWAY))
        ours.start()
        yield ours
        ours.stop()
        return
    archives = FETCHED / request.param / "lib"
    if shutil.which("java") is None or not list(archives.glob("rocketmq-namesrv-*.jar")):
        pytest.skip("the official broker was not fetched (make bench-peers)")
    cluster = Cluster(tmp_path_factory.mktemp("official"), archives)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def name():
    """Return a name of topics and groups that no other test has."""
    return f"N{uuid.uuid4().hex}"


class Heard:
    def __init__(self, on=lambda message: None):
        self.messages, self._on = [], on

    async def __call__(self, messages, context):
        context.suspend_s = 0.01
        self.messages += messages
        return self._on(messages[0])

    async def until(self, count):
        async with asyncio.timeout(30):
            while len(self.messages) < count:
                await asyncio.sleep(0.02)
        return sorted(message.body for message in self.messages)


async def test_all_queues_are_pulled_and_offsets_are_kept(cluster, name):
    async with Producer(cluster.namesrv) as producer, PullConsumer(cluster.namesrv, name) as consumer:
        await producer.send_many([OutMessage(name, b"%d" % i, keys=f"k{i}", tags="a") for i in range(20)])
        found = []
        reading = consumer.messages(name, from_="first", commit=True)
        async for message in reading:
            found.append(message)
            if len(found) == 20:
                break
        await reading.aclose()
        assert sorted(int(message.body) for message in found) == list(range(20))
        assert {message.keys[0] for message in found} == {f"k{i}" for i in range(20)}
        queue = (await consumer.queues(name))[0]
        await consumer.commit(queue, 3)
        assert await consumer.committed(queue) == 3


async def test_batches_keys_in_order_delays_and_one_way_sends(cluster, name):
    heard = Heard()
    async with Producer(cluster.namesrv) as producer:
        batch = await producer.send_batch([OutMessage(name, b"b%d" % i) for i in range(3)])
        assert [one.queue_offset for one in batch] == [0, 1, 2]
        ordered = [await producer.send(name, b"o%d" % i, sharding_key="order-1") for i in range(3)]
        assert len({(one.broker_name, one.queue_id) for one in ordered}) == 1
        await producer.send_one_way(OutMessage(name, b"one way"))
        await producer.send(name, b"by level", delay_level=1)
        await producer.send(name, b"by time", delay=1)
        async with PushConsumer(cluster.namesrv, name, heard, consume_from="first") as consumer:
            consumer.subscribe(name)
            expected = [b"b0", b"b1", b"b2", b"by level", b"by time", b"o0", b"o1", b"o2", b"one way"]
            assert await heard.until(9) == expected


async def test_a_failed_message_comes_again_and_goes_to_the_dead_letters(cluster, name):
    heard = Heard(lambda message: ConsumeStatus.LATER if message.body == b"bad" else None)
    async with Producer(cluster.namesrv) as producer, PullConsumer(cluster.namesrv) as reader:
        await producer.send(name, b"bad")
        await producer.send(name, b"good")
        async with PushConsumer(cluster.namesrv, name, heard, consume_from="first", max_reconsume_times=1) as consumer:
            consumer.subscribe(name)
            assert await heard.until(3) == [b"bad", b"bad", b"good"]
            assert {message.topic for message in heard.messages} == {name}
            async with asyncio.timeout(20):
                while True:
                    try:
                        dead = await reader.pull(f"%DLQ%{name}", 0, wait_s=1)
                    except NotFoundError:
                        await asyncio.sleep(0.1)
                        continue
                    if dead.messages:
                        break
    assert [message.body for message in dead.messages] == [b"bad"]


async def test_members_share_out_the_queues_in_order(cluster, name):
    one, other = Heard(), Heard()
    async with Producer(cluster.namesrv) as producer:
        await producer.send_many([OutMessage(name, b"%02d" % i, queue_id=i % 4) for i in range(40)])
        options = {"consume_from": "first", "orderly": True}
        async with PushConsumer(cluster.namesrv, name, one, client_id="a", **options) as first:
            first.subscribe(name)
            await one.until(40)
            async with PushConsumer(cluster.namesrv, name, other, client_id="b", **options) as second:
                second.subscribe(name)
                async with asyncio.timeout(30):
                    while len([queue for queue in second.assigned if queue.topic == name]) < 2:
                        await asyncio.sleep(0.05)
                await producer.send_many([OutMessage(name, b"%02d" % i, queue_id=i % 4) for i in range(40, 80)])
                async with asyncio.timeout(30):
                    while len(one.messages) + len(other.messages) < 80:
                        await asyncio.sleep(0.02)
    assert {message.queue_id for message in other.messages} == {2, 3}
    for heard in (one, other):
        for queue_id in range(4):
            offsets = [message.queue_offset for message in heard.messages if message.queue_id == queue_id]
            assert offsets == sorted(set(offsets))


async def test_light_queues_are_heard(cluster, name):
    heard, light = Heard(), f"%LMQ%{name}"
    async with Producer(cluster.namesrv) as producer:
        await producer.send_many([OutMessage(name, b"%d" % i, dispatch=light) for i in range(4)])
        async with PushConsumer(cluster.namesrv, name, heard, consume_from="first") as consumer:
            consumer.subscribe(light)
            assert await heard.until(4) == [b"0", b"1", b"2", b"3"]
        assert [message.queue_offset for message in heard.messages] == [0, 1, 2, 3]


@POP
async def test_light_queues_are_received(cluster, name):
    light = f"%LMQ%{name}"
    async with Producer(cluster.namesrv) as producer:
        await producer.send_many([OutMessage(name, b"%d" % i, dispatch=light) for i in range(4)])
        async with SimpleConsumer(cluster.namesrv, f"{name}-pop", consume_from="first") as simple:
            simple.subscribe(light)
            found = await simple.receive(8, wait_s=10)
            for message in found:
                await simple.ack(message)
    assert {message.queue for message in found} == {light}


@POP
async def test_messages_are_received_done_and_kept_for_longer(cluster, name):
    async with Producer(cluster.namesrv) as producer:
        await producer.send_many([OutMessage(name, b"%d" % i) for i in range(8)])
        async with SimpleConsumer(cluster.namesrv, name, consume_from="first") as consumer:
            consumer.subscribe(name)
            found = []
            async with asyncio.timeout(30):
                while len(found) < 8:
                    messages = await consumer.receive(8, invisible_s=20, wait_s=2)
                    for message in messages:
                        await consumer.ack(await consumer.change_invisible(message, 30))
                    found += messages
    assert sorted(message.body for message in found) == [b"%d" % i for i in range(8)]


async def test_messages_are_filtered_by_tags_and_sql(cluster, name):
    by_tag, by_sql = Heard(), Heard()
    async with Producer(cluster.namesrv) as producer:
        for tag, weight in (("Aa", 1), ("BB", 9), ("c", 9)):
            await producer.send(name, tag.encode(), tags=tag, properties={"weight": str(weight)})
        async with (
            PushConsumer(cluster.namesrv, f"{name}-t", by_tag, consume_from="first") as tagged,
            PushConsumer(cluster.namesrv, f"{name}-s", by_sql, consume_from="first") as chosen,
        ):
            tagged.subscribe(name, "Aa || c")
            chosen.subscribe(name, sql="weight > 5")
            assert await by_tag.until(2) == [b"Aa", b"c"]
            assert await by_sql.until(2) == [b"BB", b"c"]


async def test_large_bodies_go_compressed_and_a_consumer_pauses(cluster, name):
    heard, text = Heard(), b"text " * 2_000
    async with Producer(cluster.namesrv, compress_over=4_096) as producer:
        await producer.send(name, text)
        async with PushConsumer(cluster.namesrv, name, heard, consume_from="first") as consumer:
            consumer.subscribe(name)
            assert await heard.until(1) == [text]
            consumer.pause()
            await producer.send(name, b"later")
            await asyncio.sleep(0.5)  # brokers of others do not tell whether a pull is answered
            assert len(heard.messages) == 1
            consumer.resume()
            assert await heard.until(2) == [b"later", text]


async def test_an_expression_that_is_refused_after_the_start_is_told(cluster, name):
    async with Producer(cluster.namesrv) as producer, PushConsumer(cluster.namesrv, name, Heard()) as consumer:
        await producer.send(name, b"x")
        with pytest.raises(ResponseError):
            await consumer.subscribe(name, sql="a > ")
        await consumer.subscribe(name, sql="a > 1")


async def test_a_request_gets_its_reply(cluster, name):
    async with Producer(cluster.namesrv, f"{name}-a") as answering, Producer(cluster.namesrv, name) as producer:

        async def double(messages, context):
            for message in messages:
                await answering.reply(message, message.body * 2)

        async with PushConsumer(cluster.namesrv, name, double, consume_from="first") as consumer:
            consumer.subscribe(name)
            assert (await producer.request(name, b"ab", timeout_s=20)).body == b"abab"


async def test_transactions_are_ended_and_answered_for(cluster, name):
    """By number mod 3 they are committed, rolled back, or found out to be committed when the broker asks."""
    commit, roll_back = TransactionState.COMMIT, TransactionState.ROLLBACK
    states = (commit, roll_back, TransactionState.UNKNOWN)
    asked = set()

    async def look_up(message):
        asked.add(message.body)
        return roll_back if int(message.body) % 3 == 1 else commit

    def ends(number):
        async def execute(_sent):
            return states[number % 3]

        return execute

    async with (
        Producer(cluster.namesrv) as plain,
        TransactionProducer(cluster.namesrv, name, check=look_up) as producer,
        PullConsumer(cluster.namesrv) as consumer,
    ):
        first = await plain.send(name, b"0", queue_id=0)
        results = [
            await producer.send_in_transaction(name, b"%d" % number, ends(number), queue_id=0) for number in range(9)
        ]
        assert [(result.state, result.error) for result in results] == [(states[i % 3], None) for i in range(9)]
        bodies, offset = set(), first.queue_offset + 1
        async with asyncio.timeout(60):
            while len(bodies) < 6:
                result = await consumer.pull(name, offset, wait_s=5)
                offset = result.next_offset
                bodies |= {message.body for message in result.messages}
    assert bodies == {b"%d" % number for number in range(9) if number % 3 != 1}
    assert {b"2", b"5", b"8"} <= asked
