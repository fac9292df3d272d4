"""Taskiq: `taskiq worker taskiq_work:broker`, and `python send.py taskiq_work KIND FIRST COUNT` to send."""

from __future__ import annotations

import asyncio
import sys
import time

from counting import BROKER, DELAY_S, note, numbers, until_sent_async
from taskiq import SmartRetryMiddleware
from taskiq_aio_pika import AioPikaBroker, Queue

broker = AioPikaBroker(BROKER, delay_queue=Queue(name="taskiq.delay")).with_middlewares(
    SmartRetryMiddleware(default_delay=0.2)
)
seen = set()


@broker.task
async def plain(number: int):
    note(number)


@broker.task(retry_on_error=True, max_retries=5)
async def retried(number: int):
    if number not in seen:
        seen.add(number)
        raise RuntimeError("on purpose")
    note(number)


@broker.task
async def delayed(number: int, due: float):
    note(number, due)


async def send(kind):
    await broker.startup()
    for number in numbers():
        if kind == "delayed":
            said = (number, time.time() + DELAY_S)
            await until_sent_async(lambda said=said: delayed.kicker().with_labels(delay=DELAY_S).kiq(*said))
        else:
            task = plain if kind == "plain" else retried
            await until_sent_async(lambda task=task, number=number: task.kiq(number))
    await broker.shutdown()


def main():
    asyncio.run(send(sys.argv[1]))
