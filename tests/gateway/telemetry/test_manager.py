from __future__ import annotations

import asyncio
import sys

import aio_pika
import aiomqtt
import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from core.store.embedded import EmbeddedEngine
from gateway.settings.models import SettingsError
from gateway.settings.observing import TelemetrySettings
from gateway.telemetry.manager import Telemetry
from lmq import Producer
from tests.gateway.telemetry.test_choosing import NOT_SAMPLED, SAMPLED
from tests.support.gateway import running_gateway
from tests.support.telemetry import OtlpReceiver
from tests.support.waiting import until

PATIENCE_S = 10


def traced(receiver, **more):
    return TelemetrySettings(traces=True, endpoint=receiver.endpoint, sample_ratio=0, **more)


def mqtt_client(gateway, name):
    host, port = gateway.listening["mqtt"]
    return aiomqtt.Client(host, port, identifier=name, protocol=aiomqtt.ProtocolVersion.V5)


def saying(parent):
    properties = Properties(PacketTypes.PUBLISH)
    properties.UserProperty = [("traceparent", parent)]
    return properties


@pytest.mark.asyncio
@pytest.mark.at_once(reason="traces are made in the embedded engine")
async def test_a_trace_goes_through_the_gateway_from_a_device_to_a_service(tmp_path):
    with OtlpReceiver() as receiver:
        async with asyncio.timeout(PATIENCE_S), running_gateway(tmp_path, telemetry=traced(receiver)) as gateway:
            connection = await aio_pika.connect("amqp://guest:guest@{}:{}/".format(*gateway.listening["amqp"]))
            channel = await connection.channel()
            queue = await channel.declare_queue("readings", durable=True)
            await queue.bind("amq.topic", "plant.*")
            async with mqtt_client(gateway, "meter") as meter:
                await meter.publish("plant/1", b"20", qos=1, properties=saying(NOT_SAMPLED))
                await meter.publish("plant/1", b"21", qos=1, properties=saying(SAMPLED))
            async with queue.iterator() as messages:
                for said in (NOT_SAMPLED, SAMPLED):
                    message = await anext(messages)
                    assert message.headers["traceparent"] == said
                    await message.ack()
            await connection.close()
        spans = {span.name.split()[0]: span for _, span in receiver.spans}
        assert {service for service, _ in receiver.spans} == {"lmq-gateway"}
        assert set(spans) == {"publish", "route", "deliver", "ack"}
        assert {span.trace_id.hex() for span in spans.values()} == {SAMPLED.split("-")[1]}
        assert spans["publish"].parent_span_id.hex() == SAMPLED.split("-")[2]
        assert spans["publish"].name == "publish plant/1"
        about = {one.key: one.value.string_value for one in spans["publish"].attributes}
        assert (about["lmq.door"], about["messaging.client.id"]) == ("mqtt", "meter")
        assert spans["ack"].parent_span_id == spans["deliver"].span_id


@pytest.mark.asyncio
async def test_the_header_of_a_trace_comes_out_at_each_door_as_it_went_in(tmp_path):
    async with asyncio.timeout(PATIENCE_S), running_gateway(tmp_path) as gateway, mqtt_client(gateway, "ears") as ears:
        await ears.subscribe("a/b", qos=1)
        connection = await aio_pika.connect("amqp://guest:guest@{}:{}/".format(*gateway.listening["amqp"]))
        channel = await connection.channel()
        exchange = await channel.get_exchange("amq.topic")
        await exchange.publish(aio_pika.Message(b"x", headers={"traceparent": SAMPLED}), "a.b")
        message = await anext(aiter(ears.messages))
        assert ("traceparent", SAMPLED) in message.properties.UserProperty
        address = "{}:{}".format(*gateway.listening["namesrv"])
        async with Producer(address, group="p") as producer:
            await producer.send("LMQ_PARENT", b"y", properties={"LMQ_TOPIC": "a/b", "traceparent": SAMPLED})
        message = await anext(aiter(ears.messages))
        assert ("traceparent", SAMPLED) in message.properties.UserProperty
        await connection.close()


@pytest.mark.asyncio
@pytest.mark.at_once(reason="looks at the class of the engine")
async def test_the_numbers_of_metrics_are_sent(tmp_path):
    with OtlpReceiver() as receiver:
        settings = TelemetrySettings(metrics=True, endpoint=receiver.endpoint, service_name="plant")
        async with running_gateway(tmp_path, telemetry=settings) as gateway:
            assert type(gateway.engine) is EmbeddedEngine
            gateway.broker.metrics.door("mqtt").messages_in = 7
            gateway.broker.metrics.sync.add(0.3)
            await until(lambda: any(gateway.telemetry.collect()))  # the libraries of the operators' door are loaded
            gateway.telemetry.send_metrics(0)
            await asyncio.to_thread(_wait, receiver, lambda: "lmq_messages_in" in receiver.metrics)
        counter = receiver.metrics["lmq_messages_in"].sum
        points = {point.attributes[0].value.string_value: point.as_double for point in counter.data_points}
        assert (points["mqtt"], counter.is_monotonic) == (7, True)
        (histogram,) = receiver.metrics["lmq_sync_seconds"].histogram.data_points
        assert sum(histogram.bucket_counts) == histogram.count >= 1
        assert len(histogram.bucket_counts) == len(histogram.explicit_bounds) + 1
        assert receiver.metrics["lmq_up"].gauge.data_points[0].as_double == 1


def _wait(receiver, is_there):
    with receiver.arrived:
        assert receiver.arrived.wait_for(is_there, PATIENCE_S)


def test_off_it_is_the_usual_engine_and_nothing_is_imported(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "gateway.telemetry.otlp", None)
    telemetry = Telemetry(TelemetrySettings())
    assert telemetry.interval_ms == 0
    with pytest.raises(SettingsError, match=r"telemetry needs the extra otel: pip install 'lmq-gateway\[otel\]'"):
        Telemetry(TelemetrySettings(traces=True))


@pytest.mark.asyncio
@pytest.mark.at_once(reason="traces are made in the embedded engine")
async def test_a_receiver_that_is_away_holds_nothing_up(tmp_path):
    settings = TelemetrySettings(traces=True, metrics=True, endpoint="http://127.0.0.1:9", sample_ratio=1)
    async with asyncio.timeout(PATIENCE_S), running_gateway(tmp_path, telemetry=settings) as gateway:
        async with mqtt_client(gateway, "meter") as meter:
            await meter.publish("plant/1", b"20", qos=1)
        gateway.telemetry.send_metrics(0)
        gateway.telemetry.send_metrics(0)
