"""Nameko: `nameko run nameko_work --broker URL`, and `python send.py nameko_work KIND FIRST COUNT` to send."""

from __future__ import annotations

import sys

from counting import BROKER, check_result, note, numbers, until_sent
from nameko.events import event_handler
from nameko.rpc import rpc
from nameko.standalone.events import event_dispatcher
from nameko.standalone.rpc import ClusterRpcProxy

CONFIG = {"AMQP_URI": BROKER}
seen = set()


class Work:
    name = "work"

    @event_handler("sender", "plain", requeue_on_error=True)
    def plain(self, number):
        note(number)

    @event_handler("sender", "retried", requeue_on_error=True)
    def retried(self, number):
        if number not in seen:
            seen.add(number)
            raise RuntimeError("on purpose")
        note(number)

    @rpc
    def result(self, number):
        note(number)
        return 2 * number


def main():
    kind = sys.argv[1]
    if kind == "result":
        with ClusterRpcProxy(CONFIG, timeout=30) as cluster:
            for number in numbers():
                check_result(until_sent(lambda number=number: cluster.work.result(number)), number)
        return
    dispatch = event_dispatcher(CONFIG, mandatory=True)
    for number in numbers():
        until_sent(lambda number=number: dispatch("sender", kind, number))
