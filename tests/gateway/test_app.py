from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil

import aio_pika
import pytest

from core.errors import DataFolderInUseError, DataFolderUnusableError
from core.lmq.waiters import Reader
from core.message import StoredBatch
from core.settings import StoreSettings
from gateway.admin.metrics import GatewayCollector
from gateway.app import Gateway
from gateway.logs import JsonFormatter
from gateway.net.listener import ListenError
from gateway.runtime.loop import Clock
from gateway.settings.models import AdminSettings, MqttSettings
from tests.support.commands import run_python
from tests.support.gateway import ANY_PORT, make_closed_settings, running_gateway
from tests.support.mqtt import connect
from tests.support.sources import ROOT
from tests.support.store import light, open_store, publish, read_queue


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
    gateway = Gateway(make_closed_settings(tmp_path, mqtt=MqttSettings(listen=ANY_PORT)))
    await gateway.start()
    assert list(gateway.listening) == ["mqtt"]
    await gateway.stop()
    warned = [record.getMessage() for record in caplog.records if "let in" in record.getMessage()]
    assert warned == ["MQTT clients are let in without a login setting=auth.mqtt_anonymous"]
    told = [json.loads(JsonFormatter().format(record)) for record in caplog.records if "a login" in record.message]
    assert [(one["message"], one["setting"]) for one in told] == [
        ("MQTT clients are let in without a login", "auth.mqtt_anonymous")
    ]


@pytest.mark.asyncio
async def test_messages_that_are_from_later_than_the_machines_clock_begin_to_live_at_once(tmp_path):
    """The machine's clock was set back between two runs: no message is stored after its own time."""
    settings = make_closed_settings(tmp_path, mqtt=MqttSettings(listen=ANY_PORT))
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
async def test_folder_in_use_is_refused_and_free_after_a_stop(tmp_path):
    gateway = Gateway(make_closed_settings(tmp_path))
    await gateway.start()
    with pytest.raises(DataFolderInUseError):
        Gateway(make_closed_settings(tmp_path))
    await gateway.stop()
    again = Gateway(make_closed_settings(tmp_path))
    await again.start()
    await again.stop()


@pytest.mark.asyncio
async def test_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataFolderUnusableError):
        Gateway(make_closed_settings(tmp_path / "file"))


@pytest.mark.asyncio
async def test_port_in_use_leaves_nothing_behind(tmp_path):
    async with running_gateway(tmp_path / "first") as first:
        host, port = first.listening["mqtt"]
        second = Gateway(make_closed_settings(tmp_path / "second", mqtt=MqttSettings(listen=f"{host}:{port}")))
        with pytest.raises(ListenError, match="mqtt"):
            await second.start()
        await second.stop()


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
    gateway = Gateway(make_closed_settings(tmp_path, store=small))
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
    gateway = Gateway(make_closed_settings(tmp_path))
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
