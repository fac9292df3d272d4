"""The AMQP door as pika sees it, unchanged."""

from __future__ import annotations

import contextlib
import time

import pika
import pika.exceptions
import pytest

from tests.support.amqp_clients import WAIT_S, in_thread

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]


async def test_pika_reads_a_stream_with_a_filter(gateway):
    await in_thread(read_filtered_stream, gateway)


def read_filtered_stream(gateway):
    host, port = gateway.listening["amqp"]
    with pika.BlockingConnection(pika.ConnectionParameters(host, port)) as connection:
        channel = connection.channel()
        arguments = {"x-queue-type": "stream", "x-max-age": "1D"}
        channel.queue_declare("events", durable=True, arguments=arguments)
        channel.confirm_delivery()
        for i in range(10):
            said = pika.BasicProperties(headers={"x-stream-filter-value": "even" if i % 2 == 0 else "odd"})
            channel.basic_publish("", "events", b"%d" % i, said)
        channel.basic_qos(prefetch_count=3)
        wanted = {"x-stream-offset": "first", "x-stream-filter": "odd"}
        for _ in range(2):  # it takes nothing
            found = []
            for method, _, body in channel.consume("events", arguments=wanted, inactivity_timeout=WAIT_S):
                channel.basic_ack(method.delivery_tag)
                found.append(body)
                if len(found) == 5:
                    break
            channel.cancel()
            assert found == [b"1", b"3", b"5", b"7", b"9"]


def open_pika(gateway):
    host, port = gateway.listening["amqp"]
    return pika.BlockingConnection(pika.ConnectionParameters(host, port, heartbeat=30))


def pika_works(gateway):
    connection = open_pika(gateway)
    channel = connection.channel()
    channel.exchange_declare("logs", "fanout", durable=True)
    channel.queue_declare("pika", durable=True)
    channel.queue_bind("pika", "logs")
    channel.confirm_delivery()
    for i in range(20):
        properties = pika.BasicProperties(delivery_mode=2, headers={"i": i}, correlation_id=str(i), expiration="60000")
        channel.basic_publish("logs", "", b"%d" % i, properties, mandatory=True)
    channel.basic_qos(prefetch_count=5)
    found = []
    for method, properties, body in channel.consume("pika", inactivity_timeout=WAIT_S):
        found.append((body, properties.headers["i"], properties.correlation_id, properties.expiration))
        channel.basic_ack(method.delivery_tag)
        if len(found) == 20:
            break
    channel.cancel()
    left = channel.queue_declare("pika", durable=True, passive=True).method.message_count
    with pytest.raises(pika.exceptions.UnroutableError):
        channel.basic_publish("", "nowhere", b"x", mandatory=True)
    connection.close()
    return found, left


async def test_pika_publishes_and_consumes(gateway):
    found, left = await in_thread(pika_works, gateway)
    assert found == [(b"%d" % i, i, str(i), "60000") for i in range(20)]
    assert left == 0


def pika_commits(gateway):
    connection = open_pika(gateway)
    channel = connection.channel()
    channel.queue_declare("in", durable=True)
    channel.queue_declare("out", durable=True)
    channel.basic_publish("", "in", b"1")
    channel.tx_select()
    method, _, body = channel.basic_get("in")
    channel.basic_publish("", "out", body)
    channel.basic_ack(method.delivery_tag)
    channel.tx_rollback()
    channel.basic_publish("", "out", body + b"!")
    channel.basic_ack(method.delivery_tag)
    channel.tx_commit()
    left = [channel.basic_get(name, auto_ack=True)[2] for name in ("out", "out", "in")]
    connection.close()
    return left


async def test_pika_moves_messages_in_transactions(gateway):
    assert await in_thread(pika_commits, gateway) == [b"1!", None, None]


def pika_asks(gateway):
    connections = [open_pika(gateway) for _ in range(2)]
    server, client = [connection.channel() for connection in connections]
    server.queue_declare("service", durable=True)
    answers = []
    client.basic_consume("amq.rabbitmq.reply-to", lambda *given: answers.append(given[3]), auto_ack=True)

    def serve(channel, method, properties, body):
        channel.basic_publish("", properties.reply_to, b"re: " + body)
        channel.basic_ack(method.delivery_tag)

    server.basic_consume("service", serve)
    for i in range(10):
        client.basic_publish("", "service", b"%d" % i, pika.BasicProperties(reply_to="amq.rabbitmq.reply-to"))
    deadline = time.monotonic() + WAIT_S
    while len(answers) < 10 and time.monotonic() < deadline:
        for connection in connections:
            connection.process_data_events(0.01)
    for connection in connections:
        connection.close()
    return answers


async def test_pika_is_answered_directly(gateway):
    assert await in_thread(pika_asks, gateway) == [b"re: %d" % i for i in range(10)]


def pika_lets_expire(gateway):
    connection = open_pika(gateway)
    channel = connection.channel()
    for queue in ("late", "copy"):
        channel.queue_declare(queue, durable=True)
    channel.confirm_delivery()
    headers = {"CC": ["copy"], "BCC": ["nobody"]}
    for i in range(20):
        channel.basic_publish("", "late", b"%d" % i, pika.BasicProperties(expiration="100", headers=headers))
    channel.basic_publish("", "late", b"last", pika.BasicProperties(expiration="60000"))
    while channel.queue_declare("late", durable=True, passive=True).method.message_count > 1:
        connection.sleep(0.02)
    method, properties, body = channel.basic_get("late", auto_ack=True)
    empty = channel.basic_get("copy")[0]
    for value, text in (("soon", "invalid expiration 'soon': no_integer"), ("-1", "value_negative,-1")):
        with pytest.raises(pika.exceptions.ChannelClosedByBroker, match=text):
            channel.basic_publish("", "late", b"x", pika.BasicProperties(expiration=value))
        channel = connection.channel()
        channel.confirm_delivery()
    connection.close()
    return body, properties.expiration, method.message_count, empty


async def test_pika_messages_expire_also_in_copies(gateway):
    assert await in_thread(pika_lets_expire, gateway) == (b"last", "60000", 0, None)


def pika_meets_errors(gateway):
    connection = open_pika(gateway)
    channel = connection.channel()
    with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="no exchange 'none' in vhost '/'"):
        channel.exchange_declare("none", passive=True)
    channel = connection.channel()
    channel.basic_ack(99)
    with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="unknown delivery tag 99"):
        channel.queue_declare("q")
    channel = connection.channel()
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker, match="prefetch_size"):
        channel.basic_qos(prefetch_size=1)


async def test_pika_meets_the_errors_it_knows(gateway):
    await in_thread(pika_meets_errors, gateway)


def pika_gets(gateway):
    connection = open_pika(gateway)
    channel = connection.channel()
    channel.queue_declare("get", exclusive=True)
    channel.basic_publish("", "get", b"1")
    channel.basic_publish("", "get", b"2")
    method, _, first = channel.basic_get("get")
    channel.basic_nack(method.delivery_tag, requeue=True)
    again, _, second = channel.basic_get("get", auto_ack=True)
    channel.basic_recover(requeue=True)
    purged = channel.queue_purge("get").method.message_count
    connection.close()
    return first, second, again.redelivered, purged


async def test_pika_gets_one_by_one(gateway):
    assert await in_thread(pika_gets, gateway) == (b"1", b"1", True, 1)


def pika_closes_what_is_being_closed(gateway):
    connection = open_pika(gateway)
    for _ in range(20):
        channel = connection.channel()
        channel.basic_ack(99)  # an unknown tag: the gateway closes the channel
        with contextlib.suppress(pika.exceptions.ChannelClosedByBroker):
            channel.close()
        number = channel.channel_number
        channel = connection.channel(number)
        channel.queue_declare("q", exclusive=True)
        channel.close()
    connection.close()


async def test_pika_closes_channels_that_the_gateway_closes_too(gateway):
    await in_thread(pika_closes_what_is_being_closed, gateway)
