"""How a gateway stops: what is told, kept and closed."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import logging
import os
import weakref
from functools import partial
from pathlib import Path

import aio_pika
import pytest
from pamqp.commands import Basic, Channel, Connection, Queue

from gateway import app
from gateway.app import Gateway
from gateway.net import connection_table, transport
from gateway.net.shares import READS_NS, Shares
from gateway.settings.models import AmqpSettings
from tests.support import amqp
from tests.support.gateway import ANY_PORT, make_closed_settings, make_settings, running_gateway
from tests.support.mqtt import connect_5, disconnect_5, publish_5
from tests.support.store import publish


@pytest.mark.asyncio
async def test_a_clean_stop_is_said_with_its_end(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    gateway = Gateway(make_closed_settings(tmp_path))
    await gateway.start()
    await gateway.stop()
    first, *_, last = (record.getMessage() for record in caplog.records if "stop" in record.getMessage())
    assert first == "stopping connections=0"
    assert last.startswith("stopped, all is on disk took_ms=")


@pytest.mark.asyncio
async def test_connections_are_closed_when_the_gateway_stops(tmp_path):
    gateway = Gateway(make_settings(tmp_path))
    await gateway.start()
    reader, writer = await asyncio.open_connection(*gateway.listening["mqtt"])
    async with asyncio.timeout(20):
        while not len(gateway.connections):
            await asyncio.sleep(0)
    began = asyncio.get_running_loop().time()
    await gateway.stop()
    assert await reader.read() == b""
    assert asyncio.get_running_loop().time() - began < 5
    writer.close()


@pytest.mark.asyncio
async def test_all_ends_of_connections_are_told_before_the_store_is_closed(tmp_path, monkeypatch, caplog):
    moments = itertools.count(0, READS_NS)  # each of them fills a turn
    monkeypatch.setattr(app, "Shares", partial(Shares, now_ns=moments.__next__))
    for name in ("DRAIN_S", "DRAIN_MORE_S"):
        monkeypatch.setattr(app, name, 0.0)
    caplog.set_level(logging.INFO)
    gateway = Gateway(make_settings(tmp_path))
    await gateway.start()
    writers = [(await asyncio.open_connection(*gateway.listening["mqtt"]))[1] for _ in range(300)]
    async with asyncio.timeout(20):
        while len(gateway.connections) < len(writers):
            await asyncio.sleep(0)
    await gateway.stop()
    said = [record.getMessage().split()[0] for record in caplog.records]
    assert said.count("disconnected") == len(writers)
    assert said[-1] == "stopped,"
    for writer in writers:
        writer.close()


def _give_time(monkeypatch):
    """Have the gateway wait for its clients to end, however busy this machine is."""
    monkeypatch.setattr(app, "DRAIN_S", 60.0)
    monkeypatch.setattr(transport, "LINGER_MS", 60_000)


@pytest.mark.asyncio
async def test_consumer_that_is_behind_reads_all_that_was_sent_and_why_its_connection_ends(tmp_path, monkeypatch):
    _give_time(monkeypatch)
    monkeypatch.setattr(app, "DRAIN_S", 0.0)
    monkeypatch.setattr(app, "DRAIN_MORE_S", 60.0)
    monkeypatch.setattr(connection_table, "LOOK_S", 60.0)
    login = Connection.StartOk({}, "PLAIN", "\0guest\0guest"), Connection.TuneOk(2_047, 131_072, 0), Connection.Open()
    consumer = Channel.Open(), Queue.Declare(queue="q"), Basic.Consume(queue="q")
    said_first = [
        amqp.PROTOCOL_HEADER,
        *(amqp.method(0, one) for one in login),
        *(amqp.method(1, one) for one in consumer),
    ]
    async with running_gateway(tmp_path) as gateway, asyncio.timeout(60):
        reader, writer = await asyncio.open_connection(*gateway.listening["amqp"])
        writer.write(b"".join(said_first))
        await reader.readuntil(amqp.method(1, Basic.ConsumeOk("t"))[7:11])
        (handler,) = gateway.doors["amqp"].connections
        while handler.transport.is_writable:
            if writer.transport.get_write_buffer_size() < 4_000_000:
                writer.write(amqp.publish(1, b"x" * 1_000_000))
            await asyncio.sleep(0)
        stopping = asyncio.create_task(gateway.stop())
        said = await reader.read()
        writer.close()
        await stopping
    close = said.rindex(b"\0\x0a\0\x32\x01\x40")  # connection.close 320
    assert said[close - 7 :].startswith(b"\1\0\0")
    assert len(said) == close + int.from_bytes(said[close - 4 : close]) + 1


async def _send_while_it_ends(gateway, last, turn):
    """Return what a client of MQTT 5 reads to the end, which sends on and on when it has sent `last`."""
    reader, writer = await asyncio.open_connection(*gateway.listening["mqtt"])
    writer.write(connect_5())
    assert (await reader.readexactly(2))[0] == 0x20
    writer.write(last)
    while writer.transport.get_write_buffer_size() < 4_000_000:
        writer.write(publish_5(b"a", b"x" * 1_000_000))
    ending = asyncio.create_task(turn())
    try:
        async with asyncio.timeout(60):
            return await reader.read()
    finally:
        writer.close()
        await ending


@pytest.mark.asyncio
async def test_client_that_is_still_sending_reads_why_its_connection_ends(tmp_path, monkeypatch):
    _give_time(monkeypatch)
    async with running_gateway(tmp_path) as gateway:
        said = await _send_while_it_ends(gateway, b"\x82\x02\0\1", lambda: asyncio.sleep(0))
        assert said[said.rindex(b"\xe0") + 2] == 0x81
        said = await _send_while_it_ends(gateway, b"", gateway.stop)
        assert said.endswith(disconnect_5(0x8B))


@pytest.mark.asyncio
async def test_failed_sync_ends_the_gateway(tmp_path, caplog):
    caplog.set_level(logging.CRITICAL + 1)
    gateway = Gateway(make_closed_settings(tmp_path))
    await gateway.start()
    publish(gateway.store, gateway.broker.route_topic(b"a"), b"x", now_ms=gateway.clock.now_ms())
    with _refusing_segments(tmp_path):
        gateway.flusher.request()
        await asyncio.wait_for(gateway.stopped.wait(), 60)
    assert gateway.broker.is_failed
    assert gateway.broker.metrics.sync.failed == 1
    assert not gateway.is_ready
    await gateway.stop()


@contextlib.contextmanager
def _refusing_segments(data_dir):
    """Have the log's open segments be something that cannot be synced: compiled code asks the system by itself."""
    segments = [fd for fd, path in _open_files() if path.parent == data_dir / "commitlog"]
    assert segments
    kept = {fd: os.dup(fd) for fd in segments}
    unsynced = os.eventfd(0)
    for fd in segments:
        os.dup2(unsynced, fd)
    os.close(unsynced)
    try:
        yield
    finally:
        for fd, real in kept.items():
            os.dup2(real, fd)
            os.close(real)


def _open_files():
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # the one that lists them is gone
            yield int(link.name), link.readlink()


@pytest.mark.asyncio
@pytest.mark.at_once(reason="the flush of the stop itself brings the answer")
@pytest.mark.parametrize("turns", [0, 1, 3])
async def test_a_stop_tells_those_that_wait_for_what_they_stored(tmp_path, turns):
    gateway = Gateway(make_closed_settings(tmp_path))
    await gateway.start()
    told = []

    def note(error):
        told.append(error)
        if len(told) == 1:  # the listener may have more to keep
            store(b"second")

    def store(body):
        batch = publish(gateway.engine, gateway.broker.route_topic(b"a"), body)
        gateway.broker.when_stored(batch.ticket, note)

    store(b"first")
    for _ in range(turns):
        await asyncio.sleep(0)
    await gateway.stop()
    assert told == [None, None]


@pytest.mark.asyncio
async def test_virtual_hosts_of_a_gateway_that_stopped_leave_memory_though_exchanges_lead_to_each_other(tmp_path):
    async with running_gateway(tmp_path, amqp=AmqpSettings(listen=ANY_PORT)) as gateway:
        connection = await aio_pika.connect("amqp://guest:guest@{}:{}/".format(*gateway.listening["amqp"]))
        channel = await connection.channel()
        first, second = [await channel.declare_exchange(name, "topic") for name in ("first", "second")]
        await first.bind("amq.topic", "a.#")
        await second.bind(first, "a.*")
        await first.bind(second, "b")
        await (await channel.declare_queue("q", durable=True)).bind(second, "#")
        await connection.close()
        list(gateway.doors["amqp"].vhost.rows.take_in())  # as it is tended
        stopped = weakref.ref(gateway.doors["amqp"].vhosts)
    del gateway, connection, channel, first, second
    gc.collect()
    assert stopped() is None
