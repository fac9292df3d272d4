"""A Celery application as its users write it; the variable BROKER is the gateway's AMQP address."""

from __future__ import annotations

import json
import os
from pathlib import Path

from celery import Celery, group

app = Celery("tasks", broker=os.environ["BROKER"], backend="rpc://")
WAIT_S = 30
LATER_S = 0.4  # not 1: Celery's client loses a result that comes as one of its reads of 1 s ends, on RabbitMQ too


@app.task
def add(left, right):
    return left + right


@app.task(bind=True, max_retries=3)
def retry(self, times, countdown):
    """Return how often it was tried again: `times`."""
    if self.request.retries < times:
        raise self.retry(countdown=countdown)
    return self.request.retries


@app.task
def fail():
    raise ValueError("on purpose")


@app.task(ignore_result=True, acks_late=True)
def note(path):
    Path(path).write_text("done")


def main(path):
    """Send tasks, wait for their results, and print them."""
    note.delay(path)
    found = {
        "sum": add.delay(2, 3).get(timeout=WAIT_S),
        "retries": retry.delay(2, 0).get(timeout=WAIT_S),
        "retries later": retry.delay(1, LATER_S).get(timeout=WAIT_S),
        "sums": group(add.s(number, number) for number in range(20))().get(timeout=WAIT_S),
        "failure": repr(fail.delay().get(timeout=WAIT_S, propagate=False)),
        "workers": sum(len(answer) for answer in app.control.ping(timeout=2)),
    }
    print(json.dumps(found))  # noqa: T201
