from __future__ import annotations

import asyncio
import logging
import time

import aio_pika
import aiomqtt
import aiormq
import pytest

from core.settings import FlushSettings, RetentionSettings, StoreSettings
from gateway.amqp.handler import NOBODY
from gateway.auth.users import hash_password
from gateway.settings.models import (
    AmqpSettings,
    AuthSettings,
    MqttSettings,
    RocketmqSettings,
    SettingsError,
    UserSettings,
)
from tests.support import mqtt
from tests.support.gateway import ANY_PORT, SEGMENT_BYTES, make_settings, running_gateway
from tests.support.rocketmq import request_frame
from tests.support.store import publish

pytestmark = pytest.mark.asyncio
HASH = hash_password("secret")


async def _until(holds):
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.01)


async def test_limits_of_connections_hold_for_those_that_come_and_leave_the_others_be(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        address = gateway.listening["mqtt"]
        first = await asyncio.open_connection(*address)
        await _until(lambda: len(gateway.connections) == 1)
        await gateway.reload(make_settings(tmp_path, mqtt=MqttSettings(listen=ANY_PORT, connections_max=1)))
        second = await asyncio.open_connection(*address)
        assert await second[0].read() == b""
        await gateway.reload(make_settings(tmp_path))
        third = await asyncio.open_connection(*address)
        await _until(lambda: len(gateway.connections) == 2)
        for _, writer in (first, second, third):
            writer.close()


async def test_sizes_hold_for_connections_that_come(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        old = await _connect(gateway, b"old")
        await gateway.reload(make_settings(tmp_path, mqtt=MqttSettings(listen=ANY_PORT, packet_bytes_max=1024)))
        new = await _connect(gateway, b"new")
        for _, writer in (old, new):
            writer.write(mqtt.publish(b"t", b"x" * 2_000, qos=1, packet_id=1))
        assert await old[0].readexactly(4) == b"\x40\x02\x00\x01"
        assert await new[0].read() == b""
        for _, writer in (old, new):
            writer.close()


async def _connect(gateway, client_id):
    reader, writer = await asyncio.open_connection(*gateway.listening["mqtt"])
    writer.write(mqtt.connect(client_id, clean=True))
    assert await reader.readexactly(4) == b"\x20\x02\x00\x00"
    return reader, writer


async def test_what_the_store_and_the_doors_may_change_is_changed(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        await gateway.reload(
            make_settings(
                tmp_path,
                store=StoreSettings(
                    segment_bytes=SEGMENT_BYTES,
                    disk_free_bytes_min=7,
                    flush=FlushSettings(interval_ms=9),
                    retention=RetentionSettings(age_hours=1, bytes_max=1 << 20),
                ),
                mqtt=MqttSettings(listen=ANY_PORT, inflight_max=3, lag_count_max=4, subscription_count_max=5),
                amqp=AmqpSettings(listen=ANY_PORT, heartbeat_s=11, frame_bytes_max=8192, channels_max=12),
                rocketmq=RocketmqSettings(namesrv=ANY_PORT, broker=ANY_PORT, body_bytes_max=13, auto_topic_queues=2),
            )
        )
        assert gateway.broker.room.free_bytes_min == 7
        assert gateway.store.retention._bytes_max == 1 << 20
        assert gateway.doors["mqtt"].delivery.inflight_max == 3
        assert gateway.doors["mqtt"].delivery.lag_count_max == 4
        assert gateway.doors["mqtt"].subscribing.count_max == 5
        limits = gateway.doors["amqp"].offer
        assert (limits.heartbeat_s, limits.frame_max, limits.channel_max) == (11, 8192, 12)
        assert gateway.doors["rocketmq"].runs.body_bytes_max == 13
        assert gateway.doors["rocketmq"].topics.get(b"TBW102").write_queues == 2
        # the interval counts too: what nobody waits for is on disk after 9 ms and not after half a second
        assert gateway._quiet_flush.next_deadline_ms() <= gateway.clock.now_ms() + 9


async def test_retention_goes_by_the_size_that_was_read_again(tmp_path):
    small = StoreSettings(segment_bytes=64 * 1024)
    async with running_gateway(tmp_path, store=small) as gateway:
        route = gateway.broker.route_topic(b"a")
        for _ in range(50):
            publish(gateway.store, route, b"x" * 60_000, now_ms=gateway.clock.now_ms())
        folder = tmp_path / "commitlog"
        count = len(list(folder.iterdir()))
        await _until(lambda: len(list((tmp_path / "index").glob("0*"))) >= count - 1)
        smaller = small.model_copy(update={"retention": RetentionSettings(bytes_max=1 << 20)})
        await gateway.reload(make_settings(tmp_path, store=smaller))
        gateway.upkeep.tend(gateway.clock.now_ms())
        await _until(lambda: len(list(folder.iterdir())) < count / 2)


async def test_what_is_old_goes_in_its_hours_and_always_while_the_disk_is_low(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        now_ms = gateway.clock.now_ms()
        other = (time.localtime(now_ms / 1000).tm_hour + 12) % 24
        retention = RetentionSettings(delete_hours=(other,))
        await gateway.reload(make_settings(tmp_path, store=StoreSettings(retention=retention)))
        gateway.upkeep.tend(now_ms)
        assert not gateway.store.retention.is_by_age
        gateway.upkeep.tend(now_ms + 12 * 3_600_000)
        assert gateway.store.retention.is_by_age
        gateway.broker.room.note(0, is_full=True, now_ms=now_ms)
        gateway.upkeep.tend(now_ms)
        assert gateway.store.retention.is_by_age


async def test_each_change_has_a_line_and_what_needs_a_start_says_so(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    async with running_gateway(tmp_path) as gateway:
        listening = gateway.settings.mqtt.listen
        other = make_settings(tmp_path, mqtt=MqttSettings(listen="off", connections_max=7))
        caplog.clear()
        for _ in range(2):
            await gateway.reload(other)
        lines = [record.getMessage() for record in caplog.records if record.name == "gateway.settings.changes"]
        waits = f"setting takes effect at the next start name=mqtt.listen in_force={listening} read=off"
        assert lines == [
            "setting changed name=mqtt.connections_max from=0 to=7 for=at once",
            waits,
            "settings were read again changes=2",
            waits,
            "settings were read again changes=1",
        ]
        assert gateway.settings.mqtt.connections_max == 7
        assert gateway.settings.mqtt.listen == listening
        (_, writer) = await asyncio.open_connection(*gateway.listening["mqtt"])
        writer.close()


WRONG = {
    "a user without a password": {"auth": AuthSettings(users={"ann": UserSettings()})},
    "a limit that needs a start": {
        "amqp": AmqpSettings(listen=ANY_PORT, body_bytes_max=32 << 20),
        "store": StoreSettings(segment_bytes=SEGMENT_BYTES, message_bytes_max=32 << 20),
    },
}


@pytest.mark.parametrize("name", WRONG)
async def test_wrong_settings_change_nothing(tmp_path, caplog, name):
    caplog.set_level(logging.INFO)
    async with running_gateway(tmp_path) as gateway:
        before = gateway.settings
        caplog.clear()
        with pytest.raises(SettingsError):
            await gateway.reload(make_settings(tmp_path, **{"mqtt": MqttSettings(connections_max=7), **WRONG[name]}))
        assert gateway.settings is before
        assert gateway._limits["mqtt"].refusal("h") == ""
        gateway._limits["mqtt"].release("h")
        assert caplog.records == []


def _user(**rights):
    return AuthSettings(users={"ann": UserSettings(password_hash=HASH, **rights)})


async def test_mqtt_client_is_turned_out_when_its_user_is_gone_and_the_others_stay(tmp_path):
    async with running_gateway(tmp_path, auth=_user()) as gateway:
        host, port = gateway.listening["mqtt"]
        async with aiomqtt.Client(host, port, identifier="other") as other:
            await other.subscribe("t")
            with pytest.raises(aiomqtt.MqttError):
                async with aiomqtt.Client(host, port, username="ann", password="secret") as ann:
                    await ann.publish("t", "1", qos=1)
                    await gateway.reload(make_settings(tmp_path))
                    async for _ in ann.messages:
                        pass
            await other.publish("t", "2", qos=1)
            bodies = []
            async for message in other.messages:
                bodies.append(message.payload)
                if len(bodies) == 2:
                    break
            assert bodies == [b"1", b"2"]


async def test_amqp_client_gets_other_rights_where_it_is_and_is_turned_out_when_it_may_not_read(tmp_path):
    async with running_gateway(tmp_path, auth=_user()) as gateway:
        url = "amqp://ann:secret@{}:{}/".format(*gateway.listening["amqp"])
        connection = await aio_pika.connect(url)
        channel = await connection.channel()
        await channel.declare_queue("q")
        await channel.default_exchange.publish(aio_pika.Message(b"1"), "q")
        await gateway.reload(make_settings(tmp_path, auth=_user(may_publish=False)))
        with pytest.raises(aiormq.exceptions.ChannelAccessRefused):
            await channel.default_exchange.publish(aio_pika.Message(b"2"), "q")
        closed = asyncio.Event()
        connection.close_callbacks.add(lambda *_: closed.set())
        await gateway.reload(make_settings(tmp_path, auth=_user(may_publish=False, may_subscribe=False)))
        await asyncio.wait_for(closed.wait(), 10)
        await _until(lambda: not gateway.doors["amqp"].handlers)


async def test_rocketmq_client_is_turned_out_when_clients_without_a_name_are_not_let_in(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        reader, writer = await asyncio.open_connection(*gateway.listening["broker"])
        writer.write(request_frame(105, topic="TBW102"))
        assert await reader.read(1 << 16) != b""
        await gateway.reload(make_settings(tmp_path, auth=AuthSettings(rocketmq_anonymous=False)))
        assert await reader.read() == b""
        writer.close()
        await _until(lambda: not gateway.doors["rocketmq"].handlers)


async def test_who_has_not_logged_in_yet_is_not_turned_out(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        streams = [await asyncio.open_connection(*gateway.listening[door]) for door in ("mqtt", "amqp")]
        await _until(lambda: len(gateway.connections) == 2)
        await gateway.reload(make_settings(tmp_path, auth=AuthSettings(mqtt_anonymous=False, amqp_guest=False)))
        (handler,) = gateway.doors["amqp"].handlers
        assert handler.identity is None
        assert NOBODY.user == ""
        await asyncio.sleep(0)
        assert len(gateway.connections) == 2
        for _, writer in streams:
            writer.close()
