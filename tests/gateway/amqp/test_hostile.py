"""Clients that mean no good: what they cost is bounded, is theirs, and nobody else notices."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest
from pamqp.commands import Basic, Channel, Connection, Exchange, Queue

from tests.gateway.amqp.test_blocking import LOW, TOLD
from tests.support import amqp
from tests.support.gateway import running_gateway

HOARDED = 2_000
FRAME = 4_096
INTERVAL_S = 10


def beats(world, seconds, peer, *, says=b""):
    """Let time go by, in which a peer says something each second."""
    for _ in range(seconds):
        world.now_ms += 1_000
        if says and not peer.transport.is_closed:
            peer.begin(says)
        if not peer.transport.is_closed:
            peer.handler.on_timer(world.now_ms)


class Socket:
    """A client at a real socket, on the gateway's own loop."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    def say(self, *methods, channel=1):
        self.writer.write(b"".join(amqp.method(channel, one) for one in methods))

    async def read_until(self, kind):
        """Return the first method of a type that comes; what comes before is dropped."""
        while True:
            head = await self.reader.readexactly(7)
            payload = await self.reader.readexactly(int.from_bytes(head[3:], "big") + 1)
            if head[0] == 1 and int.from_bytes(payload[:4], "big") == kind.index:
                return amqp.decode_frames(head + payload)[0][1]

    async def call(self, method, kind):
        self.say(method)
        return await self.read_until(kind)


@asynccontextmanager
async def log_in(gateway):
    """Yield such a client with a channel."""
    peer = Socket(*await asyncio.open_connection(*gateway.listening["amqp"]))
    peer.writer.write(amqp.PROTOCOL_HEADER)
    said = {"capabilities": {"connection.blocked": True}}
    peer.say(Connection.StartOk(said, "PLAIN", "\0guest\0guest", "en_US"), channel=0)
    peer.say(Connection.TuneOk(2_047, 131_072, 0), Connection.Open("/"), channel=0)
    try:
        await peer.call(Channel.Open(), Channel.OpenOk)
        yield peer
    finally:
        peer.writer.transport.abort()
        await asyncio.gather(peer.writer.wait_closed(), return_exceptions=True)


# Consumers


def hoard(world):
    """Return a client that took all messages of a queue, and acknowledges none."""
    hoarder, sender = world.client(), world.client()
    sender.declare("q", durable=True)
    hoarder.consume("q")
    for _ in range(HOARDED // 500):
        sender.publish(*[b"x"] * 500, key="q")
        hoarder.transport.sent.clear()
    world.turn()
    hoarder.transport.sent.clear()
    assert world.amqp.vhost.find("q").pop.unacked_count == HOARDED
    return hoarder, sender


def test_others_are_served_beside_a_hoarder_and_get_it_all_when_it_goes(world):
    hoarder, sender = hoard(world)
    worker = world.client()
    worker.call(Basic.Qos(prefetch_count=1))
    worker.consume("q", "w")
    got = []
    for i in range(4):
        sender.publish(b"%d" % i, key="q")
        world.turn()
        for one in worker.messages():
            got.append(one.body)
            worker.send(Basic.Ack(one.tag))
    assert len(got) >= 1  # in turn with the hoarder, which has the others
    hoarder.vanish()
    world.turn()
    worker.send(Basic.Cancel("w"))
    worker.take()
    ready = sender.declare("q", durable=True, passive=True).message_count
    assert ready + len(got) >= HOARDED


def test_hoarder_that_does_not_read_is_sent_no_more_than_fits(world):
    hoarder, sender = world.client(), world.client()
    sender.declare("q")
    hoarder.stall()
    hoarder.consume("q")
    sender.publish(*[b"x" * 1_000] * 2_000, key="q")
    world.turn()
    assert len(hoarder.transport.sent) < 1_000_000
    assert world.amqp.vhost.find("q").pop.ready_count > 0
    assert world.client().declare("q", passive=True).consumer_count == 1


def test_get_hoarder_costs_some_bytes_a_message_and_all_is_anothers_when_it_goes(world):
    many = 400
    hoarder, sender = world.client(), world.client()
    sender.declare("q", durable=True)
    sender.publish(*[b"x"] * many, key="q")
    for _ in range(4):
        hoarder.write(amqp.method(1, Basic.Get(queue="q")) * (many // 4))
        hoarder.transport.sent.clear()
    channel = hoarder.handler.output.connection.channels[1]
    assert (channel.unacked.live, len(channel.slots)) == (many, 1)  # one entry of the ring each, and nothing else
    sender.publish(b"new", key="q")
    assert sender.call(Basic.Get(queue="q", no_ack=True)).body == b"new"
    hoarder.vanish()
    world.turn()
    assert sender.declare("q", durable=True, passive=True).message_count == many


def test_gets_of_several_queues_in_turn_are_acknowledged_where_they_came_from(world):
    peer = world.client()
    for name in ("a", "b"):
        peer.declare(name)
        peer.publish(*[name.encode()] * 4, key=name)
    for name in "abbaab":
        assert peer.call(Basic.Get(queue=name)).body == name.encode()
    peer.send(Basic.Ack(1), Basic.Nack(2), Basic.Ack(3), Basic.Reject(4), Basic.Ack(6))
    assert [peer.declare(name, passive=True).message_count for name in ("a", "b")] == [2, 2]
    assert peer.call(Basic.Get(queue="b")).method.redelivered


@pytest.mark.asyncio
async def test_get_hoarder_at_a_socket_who_does_not_read_is_not_answered_without_end(tmp_path):
    gets, body = 250, b"x" * 100_000
    async with running_gateway(tmp_path) as gateway, log_in(gateway) as hoarder, log_in(gateway) as worker:
        worker.say(Queue.Declare(queue="q"))
        worker.writer.write(amqp.publish(1, body, key="q") * gets)
        await worker.read_until(Queue.DeclareOk)
        hoarder.writer.write(amqp.method(1, Basic.Get(queue="q")) * gets)
        queue = gateway.doors["amqp"].vhosts.find("/").find("q")
        before = -1
        while queue.pop.unacked_count != before:  # until it stands still: what was answered waits in two sockets
            before = queue.pop.unacked_count
            await asyncio.sleep(0.02)
            await worker.call(Basic.Qos(prefetch_count=1), Basic.QosOk)
        assert 0 < before * len(body) < 15_000_000


@pytest.mark.asyncio
async def test_publisher_at_a_socket_that_ignores_blocked_is_read_no_more(tmp_path):
    sent = amqp.publish(1, b"x" * 1_000, key="q") * 100
    low = running_gateway(tmp_path, free_bytes=lambda: 0)
    async with low as gateway, log_in(gateway) as peer, log_in(gateway) as reader:
        peer.writer.write(amqp.method(1, Queue.Declare(queue="q")) + sent)
        await peer.read_until(Connection.Blocked)
        await reader.call(Queue.Declare(queue="q"), Queue.DeclareOk)
        stored = (await reader.call(Queue.Declare(queue="q", passive=True), Queue.DeclareOk)).message_count
        for _ in range(400):  # 40 MB: more than sockets hold
            peer.writer.write(sent)
        left = -1
        while left != (left := peer.writer.transport.get_write_buffer_size()):  # until sockets take no more
            await asyncio.sleep(0.02)
        assert (await reader.call(Queue.Declare(queue="q", passive=True), Queue.DeclareOk)).message_count == stored
        assert peer.writer.transport.get_write_buffer_size() > 10_000_000  # its own memory: the gateway's is not used


# Publishers


def test_publisher_that_ignores_blocked_is_not_read_and_nothing_is_kept_of_it(world):
    peer = world.client(properties=TOLD)
    peer.declare("q")
    peer.publish(b"first", key="q")
    world.set_free(LOW)
    assert any(isinstance(one, Connection.Blocked) for one in peer.take())
    assert peer.transport.is_held  # so the transport gives the door nothing: what it sends stays in its socket
    before = world.store.message_count
    consumer = world.client()
    assert consumer.consume("q", no_ack=True).bodies() == [b"first"]
    assert world.store.message_count == before


# Headers


def test_message_with_as_many_headers_as_fit_is_routed(world):
    peer = world.client()
    peer.declare("q")
    last = "h1399"
    bound = Queue.Bind(queue="q", exchange="amq.headers", arguments={"x-match": "all", last: 1})
    assert isinstance(peer.call(bound), Queue.BindOk)
    headers = {f"h{i}": 1 for i in range(1_400)}
    peer.publish(b"wide", exchange="amq.headers", headers=headers, mandatory=True)
    assert peer.consume("q", no_ack=True).bodies() == [b"wide"]


def test_headers_that_do_not_fit_cost_the_channel(world):
    peer = world.client()
    close = peer.write(amqp.publish(1, b"x", exchange="amq.headers", headers={"h": "x" * 40_000})).take()[-1]
    assert (close.reply_code, type(close)) == (406, Channel.Close)
    assert "content header" in close.reply_text


def test_binding_with_a_huge_table_is_refused(world):
    peer = world.client()
    peer.declare("q")
    arguments = {f"h{i}": 1 for i in range(300)}
    close = peer.call(Queue.Bind(queue="q", exchange="amq.headers", arguments=arguments))
    assert close.reply_code == 502
    assert close.reply_text == "SYNTAX_ERROR - a table in queue.bind has more than 256 fields"


def test_others_have_their_turn_while_messages_are_looked_up_among_wide_bindings(world):
    """Each message with other headers: its way is found anew."""
    peer, other = world.client(), world.client()
    other.declare("live")
    peer.call(Exchange.Declare(exchange="h", exchange_type="headers"))
    peer.declare("q")
    for i in range(50):
        arguments = {"x-match": "any", "n": i, **{f"h{j}": j for j in range(100)}}
        peer.send(Queue.Bind(queue="q", exchange="h", arguments=arguments))
    peer.take()
    peer.transport.share = 1
    headers = {f"h{j}": j for j in range(100)}
    peer.begin(*(amqp.publish(1, b"%d" % i, exchange="h", headers={**headers, "u": i}) for i in range(8)))
    assert peer in world.waiting
    other.begin(amqp.publish(1, b"between", key="live"))
    world.step()
    assert other.consume("live", no_ack=True).bodies() == [b"between"]
    world.turn()
    assert peer.declare("q", passive=True).message_count == 8


# Frames, channels, heartbeats


def test_no_frame_is_longer_than_the_client_takes(world):
    peer = world.client(frame_max=FRAME)
    peer.declare("q")
    body = bytes(range(256)) * 64
    peer.write(amqp.publish(1, body, key="q", piece=FRAME - 8))
    peer.send(Basic.Get(queue="q", no_ack=True))
    data = bytes(peer.transport.sent)
    sizes = []
    while data:
        size = 8 + int.from_bytes(data[3:7], "big")
        sizes.append(size)
        data = data[size:]
    assert max(sizes) == FRAME
    assert [one.body for one in peer.messages()] == [body]


def test_frame_that_is_longer_than_was_agreed_costs_the_connection(world):
    peer = world.client(frame_max=FRAME)
    peer.write(amqp.publish(1, b"x" * FRAME, key="q", piece=FRAME))
    close = peer.take()[-1]
    assert (type(close), close.reply_code) == (Connection.Close, 501)
    assert world.client().declare("q").message_count == 0


def test_channel_more_than_was_agreed_costs_the_connection(world):
    world.close()
    world.amqp_settings = world.amqp_settings.model_copy(update={"channels_max": 2})
    world.open()
    peer = world.accept()
    peer.write(amqp.PROTOCOL_HEADER)
    peer.send(Connection.StartOk({}, "PLAIN", "\0guest\0guest", "en_US"), channel=0)
    peer.send(Connection.TuneOk(2, 0, 0), Connection.Open("/"), channel=0)
    for number in (1, 2):
        peer.send(Channel.Open(), channel=number)
    peer.take()
    close = peer.send(Channel.Open(), channel=3).take()[-1]
    assert (type(close), close.reply_code) == (Connection.Close, 530)


def test_client_that_says_nothing_for_two_intervals_is_gone_and_its_messages_are_anothers(world):
    peer, other = world.client(heartbeat=INTERVAL_S), world.client()
    other.declare("q")
    other.publish(b"x", key="q")
    assert peer.consume("q").bodies() == [b"x"]
    beats(world, 2 * INTERVAL_S - 1, peer)
    assert not peer.transport.is_closed
    beats(world, 1, peer)
    assert peer.transport.is_closed
    peer.handler.on_closed(world.now_ms)
    assert other.consume("q", no_ack=True).bodies() == [b"x"]


@pytest.mark.parametrize("says", [amqp.raw_frame(8, 0, b""), amqp.method(1, Basic.Qos(prefetch_count=1))])
def test_client_that_says_anything_stays(world, says):
    peer = world.client(heartbeat=INTERVAL_S)
    beats(world, 5 * INTERVAL_S, peer, says=says)
    assert not peer.transport.is_closed


@pytest.mark.parametrize(("channel", "payload", "code"), [(1, b"", 505), (0, b"x", 501)])
def test_beat_that_is_none_costs_the_connection(world, channel, payload, code):
    peer = world.client(heartbeat=INTERVAL_S)
    close = peer.write(amqp.raw_frame(8, channel, payload)).take()[-1]
    assert (type(close), close.reply_code) == (Connection.Close, code)
