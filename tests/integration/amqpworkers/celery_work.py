"""Celery: `celery -A celery_work worker`, and `python send.py celery_work KIND FIRST COUNT` to send."""

from __future__ import annotations

import sys
import time

from celery import Celery
from counting import BROKER, DELAY_S, check_result, note, numbers, until_sent

app = Celery("work", broker=BROKER, backend="rpc://")
app.conf.update(
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    broker_transport_options={"confirm_publish": True},
    broker_connection_retry_on_startup=True,
    worker_prefetch_multiplier=2,
    task_publish_retry=True,
)


@app.task(ignore_result=True)
def plain(number):
    note(number)


@app.task(bind=True, max_retries=3, ignore_result=True)
def retried(self, number):
    if self.request.retries < 2:
        raise self.retry(countdown=0.2)
    note(number)


@app.task(ignore_result=True)
def delayed(number, due):
    note(number, due)


@app.task
def result(number):
    note(number)
    return 2 * number


def main():
    kind = sys.argv[1]
    for number in numbers():
        if kind == "plain":
            until_sent(lambda number=number: plain.delay(number))
        elif kind == "retried":
            until_sent(lambda number=number: retried.delay(number))
        elif kind == "delayed":
            due = time.time() + DELAY_S
            until_sent(lambda number=number, due=due: delayed.apply_async((number, due), countdown=DELAY_S))
        else:
            check_result(result.delay(number).get(timeout=30), number)
