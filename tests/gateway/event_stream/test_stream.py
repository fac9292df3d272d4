from __future__ import annotations

import asyncio
import contextlib
import json

import aio_pika
import aiomqtt
import aiormq
import pytest

from gateway.event_stream import stream
from gateway.event_stream.exchange import EVENT_EXCHANGE
from gateway.events import Actor, Kind
from gateway.settings.observing import EventsSettings
from tests.support.connections import run_turns
from tests.support.gateway import make_settings, running_gateway

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("engine")]
PATIENCE_S = 10


def mqtt_client(gateway, name):
    host, port = gateway.listening["mqtt"]
    return aiomqtt.Client(host, port, identifier=name)


async def amqp_client(gateway):
    return await aio_pika.connect("amqp://guest:guest@{}:{}/".format(*gateway.listening["amqp"]))


async def heard(messages, topic):
    """Return the next event of a topic."""
    async for message in messages:
        if str(message.topic) == f"$events/{topic}":
            return json.loads(message.payload)
    return None


async def test_mqtt_clients_hear_of_others_that_come_subscribe_and_go(tmp_path):
    async with (
        asyncio.timeout(PATIENCE_S),
        running_gateway(tmp_path, events=EventsSettings(mqtt=True)) as gateway,
        mqtt_client(gateway, "ears") as ears,
    ):
        await ears.subscribe("$events/#", qos=1)
        async with mqtt_client(gateway, "meter") as meter:
            await meter.subscribe("plant/+", qos=1)
            await meter.unsubscribe("plant/+")
        came = await heard(ears.messages, "client_connected")
        assert (came["clientid"], came["door"], came["event"]) == ("meter", "mqtt", "user.authentication.success")
        assert (await heard(ears.messages, "session_subscribed"))["topic"] == "plant/+"
        assert (await heard(ears.messages, "session_unsubscribed"))["clientid"] == "meter"
        gone = await heard(ears.messages, "client_disconnected")
        assert (gone["clientid"], gone["conn"]) == ("meter", came["conn"])
        connection = await amqp_client(gateway)
        await (await connection.channel()).declare_queue("work")
        assert (await heard(ears.messages, "queue_created"))["name"] == "work"
        await connection.close()


async def test_mqtt_clients_hear_what_becomes_of_sessions(tmp_path):
    async with (
        asyncio.timeout(PATIENCE_S),
        running_gateway(tmp_path, events=EventsSettings(mqtt=True)) as gateway,
        mqtt_client(gateway, "ears") as ears,
    ):
        await ears.subscribe("$events/#", qos=1)
        host, port = gateway.listening["mqtt"]

        def meter():
            return aiomqtt.Client(host, port, identifier="meter", clean_session=False)

        async with meter():
            made = await heard(ears.messages, "session_created")
        assert (made["clientid"], made["persistent"]) == ("meter", True)
        async with meter() as first:
            assert (await heard(ears.messages, "session_resumed"))["clientid"] == "meter"
            async with meter():
                assert (await heard(ears.messages, "session_taken_over"))["clientid"] == "meter"
                with contextlib.suppress(aiomqtt.MqttError):
                    await anext(aiter(first.messages))
        door = gateway.doors["mqtt"]
        while not door.sessions.idle_count:
            await asyncio.sleep(0)
        door.sessions.find(b"meter").expiry_s = 0
        list(door._sweep(gateway.turns.begin_read(0)))
        assert (await heard(ears.messages, "session_expired"))["clientid"] == "meter"


async def test_amqp_clients_hear_by_routing_keys_as_of_rabbitmqs_plugin(tmp_path):
    async with asyncio.timeout(PATIENCE_S), running_gateway(tmp_path, events=EventsSettings(amqp=True)) as gateway:
        connection = await amqp_client(gateway)
        channel = await connection.channel()
        queue = await channel.declare_queue("ears", durable=True)
        await queue.bind(EVENT_EXCHANGE, "queue.*")
        await queue.bind(EVENT_EXCHANGE, "user.authentication.#")
        await channel.declare_queue("work", durable=True)
        async with queue.iterator() as messages, mqtt_client(gateway, "meter"):
            found = {}
            async for message in messages:
                await message.ack()
                found[message.routing_key] = message
                if len(found) == 2:
                    break
        made = found["queue.created"]
        assert (made.headers["name"], made.headers["vhost"], made.body) == ("work", "/", b"")
        assert made.headers["user_who_performed_action"] == "guest"
        assert (made.exchange, made.delivery_mode) == (EVENT_EXCHANGE, 2)
        assert found["user.authentication.success"].headers["client"] == "meter"
        with pytest.raises(aiormq.exceptions.ChannelAccessRefused):
            exchange = await channel.get_exchange(EVENT_EXCHANGE)
            await exchange.publish(aio_pika.Message(b"false"), "queue.created", mandatory=False)
            await channel.declare_queue("after")
        await connection.close()


async def test_bindings_outlive_a_restart_and_the_setting(tmp_path):
    async with running_gateway(tmp_path, events=EventsSettings(amqp=True)) as gateway:
        connection = await amqp_client(gateway)
        queue = await (await connection.channel()).declare_queue("ears", durable=True)
        await queue.bind(EVENT_EXCHANGE, "#")
        await connection.close()
    async with running_gateway(tmp_path) as gateway:
        exchange = gateway.doors["amqp"].vhost.exchanges.find(EVENT_EXCHANGE)
        assert exchange.is_internal
        assert len(exchange.bindings) == 1
        gateway.event_stream.use(EventsSettings(amqp=True))
        Actor(gateway.authenticator.events, "amqp", 0, "").tell(Kind.VHOST_CREATED, name="v")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert gateway.broker.metrics.door("events").messages_in == 1


async def test_nothing_is_stored_that_nobody_asked_for_and_nothing_told_when_off(tmp_path):
    async with running_gateway(tmp_path, events=EventsSettings(mqtt=True, amqp=True)) as gateway:
        async with mqtt_client(gateway, "meter"):
            pass
        async with asyncio.timeout(PATIENCE_S):
            while len(gateway.connections):
                await asyncio.sleep(0.001)
        await run_turns()
        assert gateway.broker.figures().messages_stored == 0
        settings = make_settings(tmp_path)
        await gateway.reload(settings)
        assert not gateway.authenticator.events.is_heard


async def test_what_waits_is_bounded_and_losses_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(stream, "WAITING_MAX", 5)
    async with running_gateway(tmp_path, events=EventsSettings(mqtt=True)) as gateway:
        actor = Actor(gateway.authenticator.events, "amqp", 0, "")
        for number in range(8):
            actor.tell(Kind.QUEUE_CREATED, name=str(number))
        assert gateway.broker.metrics.door("events").dropped == {"too_many": 3}


async def test_dropped_messages_are_told_together(tmp_path):
    async with (
        asyncio.timeout(PATIENCE_S),
        running_gateway(tmp_path, events=EventsSettings(mqtt=True)) as gateway,
        mqtt_client(gateway, "ears") as ears,
    ):
        await ears.subscribe("$events/message_dropped", qos=1)
        gateway.broker.metrics.door("amqp").drop("unroutable", 7)
        gateway.event_stream.note_drops(0)
        gateway.event_stream.note_drops(0)
        told = await heard(ears.messages, "message_dropped")
        assert (told["door"], told["reason"], told["count"]) == ("amqp", "unroutable", 7)


async def test_clients_do_not_publish_events(tmp_path):
    async with (
        asyncio.timeout(PATIENCE_S),
        running_gateway(tmp_path) as gateway,
        mqtt_client(gateway, "ears") as ears,
    ):
        await ears.subscribe("$events/#", qos=1)
        connection = await amqp_client(gateway)
        channel = await connection.channel()
        with pytest.raises(aiormq.exceptions.ChannelAccessRefused):
            exchange = await channel.get_exchange("amq.topic")
            await exchange.publish(aio_pika.Message(b"{}"), "$events.client_connected", mandatory=False)
        await connection.close()
        assert gateway.broker.figures().messages_stored == 0
