"""AMQP transactions over a gateway that is killed with -9: of each commit all messages are there, or none."""

from __future__ import annotations

import contextlib
import random
import threading
from collections import Counter

import pika.exceptions
import pytest

from tests.support.gateway import GatewayProcess
from tests.support.pika_client import OF_KILLED_PEERS, PERSISTENT, connect

KILLS = 3
MESSAGES = 2_500  # of a commit: three appends
pytestmark = OF_KILLED_PEERS


class Committer(threading.Thread):
    """Commits the messages of one transaction after the other until the gateway is gone."""

    def __init__(self, gateway, first):
        super().__init__(daemon=True)
        self.gateway = gateway
        self.next = first
        self.committed = set()
        self.is_committing = threading.Event()

    def run(self):
        with contextlib.suppress(pika.exceptions.AMQPError, OSError):  # killed
            channel = connect(self.gateway).channel()
            channel.queue_declare("q", durable=True)
            channel.tx_select()
            while True:
                for _ in range(MESSAGES):
                    channel.basic_publish("", "q", b"%d" % self.next, PERSISTENT)
                self.is_committing.set()
                channel.tx_commit()
                self.is_committing.clear()
                self.committed.add(self.next)
                self.next += 1


def count_messages(gateway):
    """Return how many messages of each commit the queue has."""
    channel = connect(gateway).channel()
    left = channel.queue_declare("q", durable=True).method.message_count
    found = Counter()
    if left:
        for _, _, body in channel.consume("q", auto_ack=True):
            found[int(body)] += 1
            left -= 1
            if not left:
                break
    return found


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_of_a_commit_that_a_kill_meets_all_messages_are_there_or_none(tmp_path, mode):
    chance = random.Random(mode)
    committed, first = set(), 0
    with GatewayProcess(tmp_path, env={"LMQ_STORE__FLUSH__MODE": mode}) as gateway:
        for _ in range(KILLS):
            committer = Committer(gateway, first)
            committer.start()
            assert committer.is_committing.wait(30)
            committer.join(chance.uniform(0, 0.3))  # the moment of the kill, by the case
            gateway.restart()
            committer.join(10)
            committed |= committer.committed
            first = committer.next + 1
        found = count_messages(gateway)
    assert set(found.values()) <= {MESSAGES}
    assert committed <= found.keys()
