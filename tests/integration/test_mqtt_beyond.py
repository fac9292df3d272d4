"""What is beyond the standard, as outside clients use it: mosquitto's tools, paho, aiomqtt, gmqtt."""

from __future__ import annotations

import asyncio
import shutil
import subprocess

import aiomqtt
import pytest

from tests.support.gateway import GatewayProcess

pytestmark = pytest.mark.slow

WAIT_S = 15
MOSQUITTO_SUB = shutil.which("mosquitto_sub")
needs_mosquitto = pytest.mark.skipif(MOSQUITTO_SUB is None, reason="mosquitto's clients are not installed")


ONLY_MQTT = {
    f"LMQ_{name}": "off" for name in ("AMQP__LISTEN", "ROCKETMQ__NAMESRV", "ROCKETMQ__BROKER", "ADMIN__LISTEN")
}
RULES = {
    "LMQ_MQTT__MESSAGES_RATE": "200",
    "LMQ_MQTT__REWRITE": '[{"source": "old/#", "pattern": "^old/(.+)$", "destination": "new/$1"}]',
    "LMQ_MQTT__AUTO_SUBSCRIBE": '[{"filter": "auto/${clientid}/+", "qos": 1}]',
}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    with GatewayProcess(tmp_path_factory.mktemp("beyond"), doors=("mqtt",), env={**ONLY_MQTT, **RULES}) as running:
        yield running
        assert not any("Traceback" in line for line in running.errors), "".join(running.errors)


def mosquitto_sub(gateway, *options):
    host, port = gateway.address("mqtt")
    command = [MOSQUITTO_SUB, "-h", host, "-p", str(port), "-W", str(WAIT_S), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=2 * WAIT_S, check=False)


def client(gateway, **options):
    host, port = gateway.address("mqtt")
    return aiomqtt.Client(host, port, timeout=WAIT_S, **options)


@needs_mosquitto
@pytest.mark.parametrize("version", ["311", "5"])
@pytest.mark.asyncio
async def test_replay_gives_stored_messages_to_mosquitto_and_then_live_ones(gateway, version):
    topic = f"replay/{version}"
    async with client(gateway) as publisher:
        for i in range(5):
            await publisher.publish(f"{topic}/{i}", str(i), qos=1)
        options = ("-V", version, "-q", "1", "-v", "-C", "7", "-t", f"$replay/-1h/{topic}/#")
        waiting = asyncio.create_task(asyncio.to_thread(mosquitto_sub, gateway, *options))
        i = 5
        while not waiting.done():  # it ends with the seventh, however late it subscribed
            await publisher.publish(f"{topic}/{i}", str(i), qos=1)
            i += 1
            await asyncio.sleep(0.05)
        done = await waiting
    assert done.stdout.split("\n") == [f"{topic}/{i} {i}" for i in range(7)] + [""], done.stderr


@needs_mosquitto
def test_mosquitto_is_told_of_a_replay_that_cannot_be(gateway):
    done = mosquitto_sub(gateway, "-V", "5", "-t", "$replay/never/t")
    assert "denied" in done.stderr


@pytest.mark.asyncio
async def test_exclusive_and_queue_subscriptions_with_aiomqtt(gateway):
    async with client(gateway, protocol=aiomqtt.ProtocolVersion.V5) as first, client(gateway) as second:
        await first.subscribe("$exclusive/one/t")
        async with client(gateway, protocol=aiomqtt.ProtocolVersion.V5) as late:
            (code,) = await late.subscribe("$exclusive/one/t")
            assert code.value == 0x97
        await first.subscribe("$queue/work/#", qos=1)
        await second.subscribe("$queue/work/#", qos=1)
        for i in range(4):
            await second.publish(f"work/{i}", str(i), qos=1)
        await second.publish("one/t", "end", qos=1)
        got = []
        async with asyncio.timeout(WAIT_S):
            async for message in first.messages:
                if str(message.topic) == "one/t":
                    break
                got.append(message.payload)
        assert len(got) == 2


@needs_mosquitto
@pytest.mark.parametrize("version", ["311", "5"])
def test_sys_tree_is_there_for_mosquitto(gateway, version):
    done = mosquitto_sub(
        gateway, "-V", version, "-C", "2", "-F", "%r %t %p", "-t", "$SYS/broker/version", "-t", "$SYS/broker/uptime"
    )
    lines = sorted(done.stdout.splitlines())
    assert lines[0].startswith("1 $SYS/broker/uptime ")
    assert lines[0].endswith(" seconds")
    assert lines[1].startswith("1 $SYS/broker/version LMQ Gateway")


@needs_mosquitto
@pytest.mark.asyncio
async def test_rewritten_topics_and_subscriptions_that_nobody_asked_for(gateway):
    async with client(gateway, identifier="auto-1") as peer:
        await peer.subscribe("old/x/#", qos=1)
        for topic in ("old/x/1", "auto/auto-1/go"):
            command = ["mosquitto_pub", "-h", gateway.address("mqtt")[0], "-p", str(gateway.address("mqtt")[1])]
            process = await asyncio.create_subprocess_exec(*command, "-q", "1", "-t", topic, "-m", topic)
            assert await process.wait() == 0
        got = []
        async with asyncio.timeout(WAIT_S):
            async for message in peer.messages:
                got.append((str(message.topic), message.payload))
                if len(got) == 2:
                    break
    assert got == [("new/x/1", b"old/x/1"), ("auto/auto-1/go", b"auto/auto-1/go")]


@pytest.mark.asyncio
async def test_client_that_publishes_too_fast_waits_and_loses_nothing(gateway):
    async with client(gateway) as fast, client(gateway) as reader, asyncio.timeout(WAIT_S):
        await reader.subscribe("fast/t", qos=1)
        since = asyncio.get_running_loop().time()
        await asyncio.gather(*[fast.publish("fast/t", str(i), qos=1) for i in range(300)])
        assert asyncio.get_running_loop().time() - since > 0.4  # 200 at once, the others at 200 a second
        got = []
        async for message in reader.messages:
            got.append(int(message.payload))
            if len(got) == 300:
                break
    assert got == list(range(300))
