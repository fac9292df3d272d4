"""Dramatiq: `dramatiq dramatiq_work`, and `python send.py dramatiq_work KIND FIRST COUNT` to send."""

from __future__ import annotations

import sys
import time

import dramatiq
from counting import BROKER, DELAY_S, note, numbers, until_sent
from dramatiq.brokers.rabbitmq import RabbitmqBroker
from dramatiq.middleware import CurrentMessage

broker = RabbitmqBroker(url=BROKER, confirm_delivery=True)
broker.add_middleware(CurrentMessage())
dramatiq.set_broker(broker)


@dramatiq.actor
def plain(number):
    note(number)


@dramatiq.actor(max_retries=5, min_backoff=200, max_backoff=200)
def retried(number):
    if CurrentMessage.get_current_message().options.get("retries", 0) < 2:
        raise RuntimeError("on purpose")
    note(number)


@dramatiq.actor
def delayed(number, due):
    note(number, due)


def main():
    kind = sys.argv[1]
    for number in numbers():
        if kind == "plain":
            until_sent(lambda number=number: plain.send(number))
        elif kind == "retried":
            until_sent(lambda number=number: retried.send(number))
        else:
            said = (number, time.time() + DELAY_S)
            until_sent(lambda said=said: delayed.send_with_options(args=said, delay=int(1_000 * DELAY_S)))
