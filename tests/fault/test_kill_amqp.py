"""AMQP over a gateway that is killed with -9: what was confirmed is there, what was acknowledged is not."""

from __future__ import annotations

import contextlib
import threading

import pika
import pika.exceptions
import pytest

from tests.support.gateway import GatewayProcess
from tests.support.pika_client import OF_KILLED_PEERS, PERSISTENT, connect

pytestmark = OF_KILLED_PEERS


def is_empty(channel, queue):
    """Return whether all messages of a queue were given to the program."""
    is_given = not channel.queue_declare(queue, passive=True).method.message_count
    return is_given and not channel.get_waiting_message_count()


def drain(gateway, queue):
    """Return body and redelivered flag of everything in the queue, acknowledged."""
    connection = connect(gateway)
    channel = connection.channel()
    found = []
    for method, _, body in channel.consume(queue, inactivity_timeout=2):
        if method is not None:
            found.append((int(body), method.redelivered))
            channel.basic_ack(method.delivery_tag)
        if is_empty(channel, queue):
            break
    connection.close()
    return found


def test_unacknowledged_messages_come_back_and_acknowledged_ones_do_not(tmp_path):
    with GatewayProcess(tmp_path) as gateway:
        connection = connect(gateway)
        channel = connection.channel()
        channel.exchange_declare("jobs", "direct", durable=True)
        channel.queue_declare("work", durable=True)
        channel.queue_bind("work", "jobs", "k")
        channel.confirm_delivery()
        for i in range(100):
            channel.basic_publish("jobs", "k", b"%d" % i, PERSISTENT, mandatory=True)
        channel.basic_qos(prefetch_count=60)
        acked = set()
        for method, _, body in channel.consume("work"):
            if int(body) % 3 == 0:
                channel.basic_ack(method.delivery_tag)
                acked.add(int(body))
            if int(body) == 59:
                break
        channel.queue_declare("work", passive=True)  # the acknowledgements before it were taken
        gateway.restart()
        found = drain(gateway, "work")
        assert sorted(body for body, _ in found) == sorted(set(range(100)) - acked)
        assert all(again for body, again in found if body < 60)
        gateway.restart()
        assert drain(gateway, "work") == []


class Load(threading.Thread):
    """Publishes numbers with confirms, consumes and acknowledges them, until the gateway is gone."""

    def __init__(self, gateway, first):
        super().__init__(daemon=True)
        self.gateway = gateway
        self.next = first
        self.confirmed = set()
        self.acked = set()  # the gateway has answered something that came after
        self.unsure = set()  # the acknowledgement was sent, and it may have come in

    def run(self):
        connection = connect(self.gateway)
        with contextlib.suppress(pika.exceptions.AMQPError, OSError):  # killed
            self._work(connection.channel())

    def _work(self, channel):
        channel.confirm_delivery()
        channel.queue_declare("load", durable=True)
        while True:
            for _ in range(5):
                channel.basic_publish("", "load", b"%d" % self.next, PERSISTENT)
                self.confirmed.add(self.next)
                self.next += 1
            for _ in range(3):
                method, _, body = channel.basic_get("load")
                if method is not None:
                    self.unsure.add(int(body))
                    channel.basic_ack(method.delivery_tag)
            channel.queue_declare("load", passive=True)
            self.acked |= self.unsure
            self.unsure = set()


def test_no_confirmed_message_is_lost_and_no_acknowledged_one_comes_back_through_many_kills(tmp_path):
    confirmed, acked, unsure, first = set(), set(), set(), 0
    with GatewayProcess(tmp_path) as gateway:
        for _ in range(5):
            load = Load(gateway, first)
            load.start()
            load.join(1)
            gateway.restart()
            load.join(10)
            confirmed |= load.confirmed
            acked |= load.acked
            unsure |= load.unsure
            first = load.next + 1
        assert len(confirmed) > 10
        left = {body for body, _ in drain(gateway, "load")}
    assert not left & acked
    assert confirmed - acked - unsure <= left


def test_queue_that_was_declared_is_there_with_its_confirmed_messages_long_before_a_sync_is_due(tmp_path):
    env = {"LMQ_STORE__FLUSH__MODE": "async", "LMQ_STORE__FLUSH__INTERVAL_MS": "60000"}
    with GatewayProcess(tmp_path, env=env) as gateway:
        channel = connect(gateway).channel()
        channel.exchange_declare("jobs", "direct", durable=True)
        channel.queue_declare("work", durable=True)
        channel.queue_bind("work", "jobs", "k")
        channel.confirm_delivery()
        channel.basic_publish("jobs", "k", b"1", PERSISTENT, mandatory=True)
        gateway.restart()
        connection = connect(gateway)
        channel = connection.channel()
        channel.confirm_delivery()
        channel.basic_publish("jobs", "k", b"2", PERSISTENT, mandatory=True)  # exchange and binding are there too
        connection.close()
        assert [body for body, _ in drain(gateway, "work")] == [1, 2]


def test_messages_confirmed_on_their_way_to_an_exchange_that_delays_come_on_both_ways_through_kills(tmp_path):
    """Nothing confirmed is lost on either way, and what came at once comes once."""
    with GatewayProcess(tmp_path) as gateway:
        channel = connect(gateway).channel()
        channel.exchange_declare("in", "fanout", durable=True)
        channel.exchange_declare("later", "x-delayed-message", durable=True, arguments={"x-delayed-type": "fanout"})
        channel.exchange_bind("later", "in")
        for queue, exchange in (("now", "in"), ("then", "later")):
            channel.queue_declare(queue, durable=True)
            channel.queue_bind(queue, exchange)
        confirmed = set()
        for delay in (60_000, 3_000, 500):  # the first two wait through a kill, the last ones are handed on around it
            channel = connect(gateway).channel()
            channel.confirm_delivery()
            properties = pika.BasicProperties(delivery_mode=2, headers={"x-delay": delay})
            for _ in range(20):
                number = len(confirmed)
                channel.basic_publish("in", "", b"%d" % number, properties)
                confirmed.add(number)
            gateway.restart()
        assert sorted(body for body, _ in drain(gateway, "now")) == sorted(confirmed)
        soon = {number for number in confirmed if number >= 20}
        found = set()
        while not soon <= found:  # those of a minute still wait
            found |= {body for body, _ in drain(gateway, "then")}
        assert found == soon


REJECTED = 2_000
KILLS = 2


def reject_all(gateway, is_rejecting):
    """Reject what `work` gives, until it is empty or the gateway is gone."""
    with contextlib.suppress(pika.exceptions.AMQPError, OSError):
        channel = connect(gateway).channel()
        channel.basic_qos(prefetch_count=50)
        for method, _, _ in channel.consume("work", inactivity_timeout=2):
            if method is not None:
                is_rejecting.set()
                channel.basic_nack(method.delivery_tag, requeue=False)
            elif is_empty(channel, "work"):
                return


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_each_rejected_message_has_one_letter_over_kills(tmp_path, mode):
    with GatewayProcess(tmp_path, env={"LMQ_STORE__FLUSH__MODE": mode}) as gateway:
        channel = connect(gateway).channel()
        channel.queue_declare("dead", durable=True)
        to_dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
        channel.queue_declare("work", durable=True, arguments=to_dead)
        channel.tx_select()
        for number in range(REJECTED):
            channel.basic_publish("", "work", b"%d" % number, PERSISTENT)
        channel.tx_commit()
        for kill in range(KILLS):
            is_rejecting = threading.Event()
            rejecter = threading.Thread(target=reject_all, args=(gateway, is_rejecting))
            rejecter.start()
            assert is_rejecting.wait(30)
            rejecter.join(0.03 * (kill + 1))  # the moment of the kill
            gateway.restart()
            rejecter.join(10)
        reject_all(gateway, threading.Event())
        channel = connect(gateway).channel()
        bodies = []
        for method, _, body in channel.consume("dead", auto_ack=True, inactivity_timeout=1):
            if method is not None:
                bodies.append(int(body))
            elif is_empty(channel, "dead"):
                break
        assert sorted(bodies) == list(range(REJECTED))
