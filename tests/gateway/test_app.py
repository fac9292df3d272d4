from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import logging
import os
import shutil
import weakref
from functools import partial
from pathlib import Path

import aio_pika
import pytest
from pamqp.commands import Basic, Channel, Connection, Queue

from core.errors import DataFolderInUseError, DataFolderUnusableError
from core.lmq.waiters import Reader
from core.message import StoredBatch
from core.settings import StoreSettings
from gateway import app
from gateway.admin.metrics import GatewayCollector
from gateway.app import Gateway
from gateway.net import connection_table, transport
from gateway.net.listener import ListenError
from gateway.net.shares import READS_NS, Shares
from gateway.runtime.loop import Clock
from gateway.settings.models import AdminSettings, AmqpSettings, MqttSettings, RocketmqSettings
from tests.support import amqp
from tests.support.commands import run_python
from tests.support.gateway import ANY_PORT, make_settings, running_gateway
from tests.support.mqtt import connect, connect_5, disconnect_5, publish_5
from tests.support.sources import ROOT
from tests.support.store import light, open_store, publish, read_queue


def _offers(data_dir, **blocks):
    off = {
        "mqtt": MqttSettings(listen="off"),
        "amqp": AmqpSettings(listen="off"),
        "rocketmq": RocketmqSettings(namesrv="off", broker="off"),
        "admin": AdminSettings(listen="off"),
    }
    return make_settings(data_dir, **{**off, **blocks})


@pytest.mark.asyncio
async def test_every_open_door_is_listed_with_its_port(tmp_path):
    async with running_gateway(tmp_path, admin=AdminSettings(listen=ANY_PORT)) as gateway:
        doors = [line.split()[1] for line in gateway.lines()]
        assert doors == ["mqtt", "amqp", "broker", "namesrv", "admin"]
        for host, port in gateway.listening.values():
            _, writer = await asyncio.open_connection(host, port)
            writer.close()
        assert gateway.is_ready
    assert not gateway.is_ready


@pytest.mark.asyncio
async def test_wills_that_a_killed_process_left_are_queued_for_amqp(tmp_path):
    async with running_gateway(tmp_path / "data") as gateway:
        host, port = gateway.listening["amqp"]
        async with await aio_pika.connect(f"amqp://guest:guest@{host}:{port}/") as service:
            channel = await service.channel()
            queue = await channel.declare_queue("gone", durable=True)
            await queue.bind("amq.topic", "gone")
        reader, writer = await asyncio.open_connection(*gateway.listening["mqtt"])
        writer.write(connect(b"device", will=(b"gone", b"bye", 1, False)))
        await reader.readexactly(4)
        shutil.copytree(tmp_path / "data", tmp_path / "killed")
        writer.close()
    async with running_gateway(tmp_path / "killed") as gateway:
        host, port = gateway.listening["amqp"]
        async with await aio_pika.connect(f"amqp://guest:guest@{host}:{port}/") as service:
            queue = await (await service.channel()).get_queue("gone")
            assert (await queue.get(no_ack=True, timeout=20)).body == b"bye"


@pytest.mark.asyncio
async def test_closed_doors_are_not_listened_on_nor_warned_of(tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    gateway = Gateway(_offers(tmp_path, mqtt=MqttSettings(listen=ANY_PORT)))
    await gateway.start()
    assert list(gateway.listening) == ["mqtt"]
    await gateway.stop()
    warned = [record.getMessage() for record in caplog.records if "let in" in record.getMessage()]
    assert warned == ["MQTT clients are let in without a login setting=auth.mqtt_anonymous"]


@pytest.mark.asyncio
async def test_messages_that_are_from_later_than_the_machines_clock_begin_to_live_at_once(tmp_path):
    """The machine's clock was set back between two runs: no message is stored after its own time."""
    settings = _offers(tmp_path, mqtt=MqttSettings(listen=ANY_PORT))
    store = open_store(tmp_path, settings.store)
    machine_ms = Clock().now_ms()
    publish(store, store.make_route(b"T", 0, b"", [b"%LMQ%q"]), b"x", now_ms=machine_ms + 3_600_000)
    store.close()
    gateway = Gateway(settings)
    now_ms = gateway.clock.now_ms()
    assert machine_ms + 3_600_000 <= now_ms < machine_ms + 3_700_000
    await gateway.start()
    assert gateway.clock.now_ms() - now_ms < 60_000
    await gateway.stop()


ADMINS = {"fastapi", "starlette", "uvicorn", "prometheus_client"}  # libraries of the admin door
START = """
import asyncio, sys, urllib.request
from functools import partial
from pathlib import Path
from gateway.app import Gateway
from gateway.settings.models import AdminSettings, AmqpSettings, GatewaySettings, MqttSettings, RocketmqSettings

async def run():
    gateway = Gateway(GatewaySettings(
        data_dir=Path(sys.argv[1]),
        mqtt=MqttSettings(listen="127.0.0.1:0"),
        amqp=AmqpSettings(listen="off"),
        rocketmq=RocketmqSettings(namesrv="off", broker="off"),
        admin=AdminSettings(listen=sys.argv[2]),
    ))
    await gateway.start()
    if "admin" in gateway.listening:
        host, port = gateway.listening["admin"]
        (await asyncio.to_thread(urllib.request.urlopen, f"http://{host}:{port}/healthz")).close()
    print(" ".join(sys.modules))
    await gateway.stop()

asyncio.run(run())
"""


@pytest.mark.slow
@pytest.mark.parametrize(("listen", "is_loaded"), [("off", False), ("127.0.0.1:0", True)])
def test_a_gateway_without_an_admin_door_does_without_its_libraries(tmp_path, listen, is_loaded):
    ran = run_python("-c", START, str(tmp_path), listen, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert ran.returncode == 0, ran.stderr
    loaded = {name.partition(".")[0] for name in ran.stdout.split()} & {
        "fastapi",
        "starlette",
        "uvicorn",
        "prometheus_client",
    }
    assert loaded == ({"fastapi", "starlette", "uvicorn", "prometheus_client"} if is_loaded else set())


@pytest.mark.asyncio
async def test_a_clean_stop_is_said_with_its_end(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    gateway = Gateway(_offers(tmp_path))
    await gateway.start()
    await gateway.stop()
    first, *_, last = (record.getMessage() for record in caplog.records if "stop" in record.getMessage())
    assert first == "stopping connections=0"
    assert last.startswith("stopped, all is on disk took_ms=")


@pytest.mark.asyncio
async def test_folder_in_use_is_refused_and_free_after_a_stop(tmp_path):
    gateway = Gateway(_offers(tmp_path))
    await gateway.start()
    with pytest.raises(DataFolderInUseError):
        Gateway(_offers(tmp_path))
    await gateway.stop()
    again = Gateway(_offers(tmp_path))
    await again.start()
    await again.stop()


@pytest.mark.asyncio
async def test_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataFolderUnusableError):
        Gateway(_offers(tmp_path / "file"))


@pytest.mark.asyncio
async def test_port_in_use_leaves_nothing_behind(tmp_path):
    async with running_gateway(tmp_path / "first") as first:
        host, port = first.listening["mqtt"]
        second = Gateway(_offers(tmp_path / "second", mqtt=MqttSettings(listen=f"{host}:{port}")))
        with pytest.raises(ListenError, match="mqtt"):
            await second.start()
        await second.stop()


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
    gateway = Gateway(_offers(tmp_path))
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
async def test_damage_that_readers_meet_is_counted_and_told(tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    small = StoreSettings(segment_bytes=64 * 1024)
    store = open_store(tmp_path, small)
    batch = publish(store, store.make_route(b"T", 0, b"", light("a")), *(b"x" * 900,) * 100)
    store.close()
    path = tmp_path / "commitlog" / f"{0:020}"
    data = bytearray(path.read_bytes())
    data[batch.physical_offset[20] + 95] ^= 0x40
    path.write_bytes(data)
    gateway = Gateway(_offers(tmp_path, store=small))
    await gateway.start()
    before = gateway.store.damaged_count
    assert len(read_queue(gateway.store, b"%LMQ%a")) == 99
    families = {family.name: family for family in GatewayCollector(gateway.broker, gateway.capacity).collect()}
    assert families["lmq_records_damaged"].samples[0].value == gateway.store.damaged_count == before + 1
    for _ in range(2):
        gateway.upkeep.tend(gateway.clock.now_ms())
    assert caplog.text.count("readers met damaged records, which are not served count=1") == 1
    await gateway.stop()


class Taker(Reader):
    """Takes what it can for a moment each time that it is woken, and says how often each message was given."""

    def __init__(self, gateway):
        self.gateway = gateway
        self.pop = gateway.broker.pop.open(b"%LMQ%q", b"g")
        self.given = []
        self.is_done = asyncio.Event()

    def on_ready(self, now_ms):
        batch = StoredBatch(4)
        while self.pop.take(batch, 4, 1 << 20, now_ms + 1, now_ms):
            self.given += batch.attempt[: batch.count]
        if 3 in self.given:
            self.is_done.set()
        return False


@pytest.mark.asyncio
@pytest.mark.here(reason="its reader takes what is here when it is woken")
async def test_who_waits_gets_messages_again_whose_invisible_time_is_over(tmp_path):
    gateway = Gateway(_offers(tmp_path))
    await gateway.start()
    publish(gateway.store, gateway.store.make_route(b"T", 0, b"", [b"%LMQ%q"]), b"message")
    taker = Taker(gateway)
    gateway.broker.park(taker.pop.queue_ref, taker)
    gateway.broker.request_run(taker)
    await asyncio.wait_for(taker.is_done.wait(), 10)
    assert taker.given == [1, 2, 3]
    await gateway.stop()


@pytest.mark.asyncio
async def test_disk_that_is_low_at_the_start_holds_the_first_publisher(tmp_path):
    async with running_gateway(tmp_path, free_bytes=lambda: 0) as gateway:
        assert gateway.broker.room.is_low


@pytest.mark.asyncio
@pytest.mark.at_once(reason="the flush of the stop itself brings the answer")
@pytest.mark.parametrize("turns", [0, 1, 3])
async def test_a_stop_tells_those_that_wait_for_what_they_stored(tmp_path, turns):
    gateway = Gateway(_offers(tmp_path))
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
