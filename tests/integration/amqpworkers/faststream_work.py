"""FastStream: `python send.py faststream_work worker`, and KIND FIRST COUNT in place of `worker` to send."""

from __future__ import annotations

import asyncio
import sys
import time

from counting import BROKER, DELAY_S, check_result, note, numbers, until_sent_async
from faststream import AckPolicy, FastStream
from faststream.exceptions import NackMessage
from faststream.rabbit import RabbitBroker, RabbitQueue
from faststream.rabbit.annotations import RabbitMessage

broker = RabbitBroker(BROKER)
app = FastStream(broker)
PAUSE = RabbitQueue(
    "pause",
    durable=True,
    arguments={
        "x-message-ttl": int(1_000 * DELAY_S),
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": "delayed",
    },
)


@broker.subscriber(RabbitQueue("plain", durable=True), ack_policy=AckPolicy.NACK_ON_ERROR)
async def plain(number: int):
    note(number)


@broker.subscriber(RabbitQueue("retried", durable=True), ack_policy=AckPolicy.NACK_ON_ERROR)
async def retried(number: int, message: RabbitMessage):
    if not message.raw_message.redelivered:
        raise NackMessage
    note(number)


@broker.subscriber(RabbitQueue("delayed", durable=True), ack_policy=AckPolicy.NACK_ON_ERROR)
async def delayed(said: list[float]):
    note(int(said[0]), said[1])


@broker.subscriber(RabbitQueue("result", durable=True))
async def result(number: int) -> int:
    note(number)
    return 2 * number


async def send(kind):
    await broker.connect()
    await broker.declare_queue(PAUSE)
    await broker.declare_queue(RabbitQueue(kind, durable=True))
    for number in numbers():
        if kind == "delayed":
            said = [number, time.time() + DELAY_S]
            await until_sent_async(lambda said=said: broker.publish(said, "pause", persist=True))
        elif kind == "result":
            answer = await broker.request(number, "result", timeout=30)
            check_result(await answer.decode(), number)
        else:
            await until_sent_async(lambda number=number: broker.publish(number, kind, persist=True))
    await broker.stop()


def main():
    asyncio.run(app.run() if sys.argv[1] == "worker" else send(sys.argv[1]))
