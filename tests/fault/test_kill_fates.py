"""What became of messages is told the same before and after the gateway is killed with -9, at each door."""

from __future__ import annotations

import asyncio

import aiomqtt
import httpx
import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from lmq import Producer, SimpleConsumer, TransactionProducer, TransactionState
from tests.support.gateway import DOORS, GatewayProcess
from tests.support.waiting import WAIT_S

pytestmark = [pytest.mark.slow, pytest.mark.asyncio]

DONE = 7  # of nine messages; a group that takes by POP says how far it is a bit later
TOLD = ("stage", "outcome", "letter", "became", "note")


def _api(gateway):
    host, port = gateway.address("admin")
    return httpx.AsyncClient(base_url=f"http://{host}:{port}", auth=("guest", "guest"), timeout=WAIT_S)


async def _work_by_mqtt(gateway):
    """Send a session a message that is too large for its client, and one that it acknowledges."""
    host, port = gateway.address("mqtt")
    properties = Properties(PacketTypes.CONNECT)
    properties.SessionExpiryInterval, properties.MaximumPacketSize = 3_600, 100
    device = aiomqtt.Client(
        host,
        port,
        identifier="device",
        protocol=aiomqtt.ProtocolVersion.V5,
        clean_start=True,
        properties=properties,
        timeout=WAIT_S,
    )
    async with device, aiomqtt.Client(host, port, timeout=WAIT_S) as publisher:
        await device.subscribe("plant/#", qos=1)
        for size in (200, 1):
            await publisher.publish("plant/1", size * b"x", qos=1)
        await anext(device.messages)
        await device.unsubscribe("none")  # the acknowledgement came before its answer


async def _work_by_amqp(client):
    """Have a queue a message that is acknowledged, one that is rejected, and one that waits."""
    answer = await client.put("/api/queues/%2F/jobs", json={"durable": True, "arguments": {}})
    assert answer.status_code == 201
    for body in ("0", "1", "2"):
        sent = {
            "properties": {"delivery_mode": 2},
            "routing_key": "jobs",
            "payload": body,
            "payload_encoding": "string",
        }
        assert (await client.post("/api/exchanges/%2F/amq.default/publish", json=sent)).json() == {"routed": True}
    for mode in ("ack_requeue_false", "reject_requeue_false"):
        asked = {"count": 1, "ackmode": mode, "encoding": "auto"}
        assert len((await client.post("/api/queues/%2F/jobs/get", json=asked)).json()) == 1


async def _work_by_rocketmq(gateway):
    """Take one of two messages as a group, commit a transaction and roll one back; return the half messages' ids."""
    namesrv = "{}:{}".format(*gateway.address("namesrv"))
    async with Producer(namesrv) as producer, SimpleConsumer(namesrv, "crew", consume_from="first") as consumer:
        for body in (b"0", b"1"):
            await producer.send("Work", body, queue_id=0)
        consumer.subscribe("Work")
        (message,) = await consumer.receive(1, wait_s=WAIT_S)
        await consumer.ack(message)

    async def unknown(*_):
        return TransactionState.UNKNOWN

    async with TransactionProducer(namesrv, "payers", check=unknown) as payers:
        return [
            (await payers.send_in_transaction("Pay", b"x", _answering(state))).sent.msg_id
            for state in (TransactionState.COMMIT, TransactionState.ROLLBACK)
        ]


def _answering(state):
    async def answer(*_):
        return state

    return answer


async def _tell_all(client, halves):
    """Return what is told of the readers of all these messages, once as many are done as it takes."""
    numbers = [*halves]
    for queue in ("%LMQ%mqtt%plant%|h", "%LMQ%amqp%|2f%jobs", "Work/0"):
        found = (await client.get("/api/lmq/messages", params={"queue": queue, "at_ms": 0})).json()
        numbers += [item["id"] for item in found["items"]]
    told = [(await client.get(f"/api/lmq/messages/{number}")).json() for number in numbers]
    readers = [reader for one in told for queue in one["queues"] for reader in queue["readers"]]
    return [{name: reader[name] for name in TOLD} for reader in readers]


async def test_what_is_told_of_messages_is_the_same_after_a_kill(tmp_path):
    with GatewayProcess(tmp_path / "data", doors=DOORS) as gateway:
        async with _api(gateway) as client:
            await _work_by_mqtt(gateway)
            await _work_by_amqp(client)
            halves = await _work_by_rocketmq(gateway)
            async with asyncio.timeout(WAIT_S):
                before = await _tell_all(client, halves)
                while [one["stage"] for one in before].count("done") < DONE:
                    await asyncio.sleep(0.05)
                    before = await _tell_all(client, halves)
            made = await client.put("/api/queues/%2F/last", json={"durable": True, "arguments": {}})
            assert made.status_code == 201  # and with it all else that was to be committed is
        gateway.restart()
        async with _api(gateway) as client:
            after = await _tell_all(client, halves)
    assert after == before
    assert [one["outcome"] for one in after] == [
        "its transaction was committed",
        "its transaction was rolled back",
        "dropped: it was too large for its client",
        "acknowledged",
        "acknowledged",
        "rejected",
        None,
        "acknowledged, or not wanted by its filter",
        None,
    ]
