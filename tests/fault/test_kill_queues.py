"""Queues that do more than wait, over kills with -9: limits, chains of dead letters, priorities, streams and delays."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections import Counter

import pika
import pika.exceptions
import pytest

from tests.support.gateway import GatewayProcess
from tests.support.pika_client import OF_KILLED_PEERS, connect

KILLS = 2
WAIT_S = 30
DELAY_MAX_MS = 2_000
NEWEST_MAX, FULL_MAX = 40, 20
pytestmark = OF_KILLED_PEERS
CHAIN = ("first", "rejecting", "last")  # each message goes round
QUEUES = {
    "first": {"x-message-ttl": 100, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "rejecting"},
    "rejecting": {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "last"},
    "last": {"x-message-ttl": 100, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "first"},
    "newest": {"x-max-length": NEWEST_MAX, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dropped"},
    "dropped": {},
    "full": {
        "x-max-length": FULL_MAX,
        "x-overflow": "reject-publish-dlx",
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": "refused",
    },
    "refused": {},
    "ranked": {"x-max-priority": 5},
    "stream": {"x-queue-type": "stream"},
    "later": {},
}


def declare(gateway):
    channel = connect(gateway).channel()
    for name, arguments in QUEUES.items():
        channel.queue_declare(name, durable=True, arguments=arguments)
    channel.exchange_declare("wait", "x-delayed-message", durable=True, arguments={"x-delayed-type": "direct"})
    channel.queue_bind("later", "wait")
    channel.connection.close()


class Publisher:
    """Publishes numbers to one queue, each with a confirm, and knows what became of them."""

    def __init__(self, queue):
        self.queue = queue
        self.next = 0
        self.confirmed, self.refused = set(), set()
        self.is_ready = threading.Event()

    def begin(self, gateway):
        """Return a thread that publishes until the gateway is gone."""
        self.is_ready.clear()
        thread = threading.Thread(target=self._work, args=(gateway,), daemon=True)
        thread.start()
        return thread

    def _work(self, gateway):
        with contextlib.suppress(pika.exceptions.AMQPError, OSError):  # killed
            channel = connect(gateway).channel()
            channel.confirm_delivery()
            while True:
                self._publish(channel)
                self.is_ready.set()

    def _publish(self, channel):
        number, self.next = self.next, self.next + 1
        said = pika.BasicProperties(delivery_mode=2, priority=number % 6 if self.queue == "ranked" else None)
        if self.queue == "later":
            said.headers = {"x-delay": 1 + number * 37 % DELAY_MAX_MS}
        try:
            channel.basic_publish("wait" if self.queue == "later" else "", self.queue, b"%d" % number, said)
        except pika.exceptions.NackError:
            self.refused.add(number)
        else:
            self.confirmed.add(number)


def reject(gateway):
    """Reject what comes to the middle of the chain, until the gateway is gone."""
    with contextlib.suppress(pika.exceptions.AMQPError, OSError):
        channel = connect(gateway).channel()
        channel.basic_qos(prefetch_count=20)
        for method, _, _ in channel.consume("rejecting"):
            channel.basic_reject(method.delivery_tag, requeue=False)


def drain(channel, queue):
    """Return numbers and properties of what is ready in a queue, acknowledged."""
    found = []
    while True:
        method, properties, body = channel.basic_get(queue, auto_ack=True)
        if method is None:
            return found
        found.append((int(body), properties))


def numbers(channel, queue):
    return Counter(number for number, _ in drain(channel, queue))


def gather(channel, queues, wanted):
    """Return how often each number came out of some queues, until all that are wanted did."""
    found, until = Counter(), time.monotonic() + WAIT_S
    while not wanted <= found.keys():
        assert time.monotonic() < until, f"missing: {sorted(wanted - found.keys())[:9]}"
        for queue in queues:
            found += numbers(channel, queue)
    return found


def read_stream(channel, count):
    channel.basic_qos(prefetch_count=100)
    found = []
    for method, properties, body in channel.consume("stream", arguments={"x-stream-offset": "first"}):
        found.append((int(body), properties.headers["x-stream-offset"]))
        channel.basic_ack(method.delivery_tag)
        if len(found) == count:
            channel.cancel()
            return found
    raise AssertionError("the stream ended")


def check_limits(channel, newest, full):
    """A message that has no place is a letter, once, and in its queue no more."""
    kept, dropped = numbers(channel, "newest"), numbers(channel, "dropped")
    assert kept.total() <= NEWEST_MAX
    assert newest.confirmed <= (kept | dropped).keys()
    assert set((kept + dropped).values()) == {1}
    kept, refused = numbers(channel, "full"), numbers(channel, "refused")
    assert kept.total() <= FULL_MAX
    assert full.refused <= refused.keys()
    assert full.confirmed <= (kept | refused).keys()
    assert set((kept + refused).values()) == {1}


def check_order(channel, ranked, stream):
    found = drain(channel, "ranked")
    assert ranked.confirmed <= {number for number, _ in found}
    levels = [min(properties.priority, 5) for _, properties in found]
    assert levels == sorted(levels, reverse=True)
    found = read_stream(channel, channel.queue_declare("stream", passive=True).method.message_count)
    assert stream.confirmed <= {number for number, _ in found}
    assert [offset for _, offset in found] == list(range(len(found)))


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_what_was_confirmed_is_where_it_belongs_after_kills(tmp_path, mode):
    chance = random.Random(mode)
    loads = {name: Publisher(name) for name in ("first", "newest", "full", "ranked", "stream", "later")}
    with GatewayProcess(tmp_path, env={"LMQ_STORE__FLUSH__MODE": mode}) as gateway:
        declare(gateway)
        for _ in range(KILLS):
            threads = [load.begin(gateway) for load in loads.values()]
            threads.append(threading.Thread(target=reject, args=(gateway,), daemon=True))
            threads[-1].start()
            assert all(load.is_ready.wait(WAIT_S) for load in loads.values())
            threads[0].join(chance.uniform(0.5, 1.5))  # the moment of the kill, by the case
            gateway.restart()
            for thread in threads:
                thread.join(WAIT_S)
        channel = connect(gateway).channel()
        assert set(gather(channel, CHAIN, loads["first"].confirmed).values()) == {1}
        gather(channel, ["later"], loads["later"].confirmed)  # one that was routed just before a kill may come twice
        check_limits(channel, loads["newest"], loads["full"])
        check_order(channel, loads["ranked"], loads["stream"])
        assert min(len(load.confirmed) for load in loads.values()) > KILLS
        channel.connection.close()
        assert gateway.stop() == 0
