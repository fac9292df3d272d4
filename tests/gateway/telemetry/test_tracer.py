from __future__ import annotations

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from gateway.telemetry import tracer as tracer_module
from gateway.telemetry.choosing import Choice
from gateway.telemetry.traced_engine import TracedEngine
from gateway.telemetry.tracer import MessageTracer
from tests.gateway.telemetry.test_choosing import SAMPLED
from tests.support.store import NOW_MS
from tests.support.telemetry import TracedBroker


@pytest.fixture
def site(tmp_path):
    site = TracedBroker(tmp_path)
    yield site
    site.close()


def test_a_span_for_each_step_with_the_time_that_it_took(site):
    site.publish(b"%LMQ%amqp%|2f%work", parent=SAMPLED)
    site.at_ns += 5_000
    pop, offset = site.take(b"%LMQ%amqp%|2f%work")
    site.at_ns += 7_000
    pop.ack(offset)
    publish, route, deliver, ack = [site.spans()[name] for name in ("publish", "route", "deliver", "ack")]
    assert publish.parent.span_id == int(SAMPLED.split("-")[2], 16)
    assert {span.context.trace_id for span in (publish, route, deliver, ack)} == {int(SAMPLED.split("-")[1], 16)}
    assert route.parent.span_id == deliver.parent.span_id == publish.context.span_id
    assert ack.parent.span_id == deliver.context.span_id
    assert (deliver.end_time - deliver.start_time, ack.end_time - ack.start_time) == (5_000, 7_000)
    assert route.attributes["lmq.queue_names"] == ("%LMQ%amqp%|2f%work",)
    assert publish.attributes["messaging.message.body.size"] == 4


def test_one_that_is_given_back_is_delivered_once_and_acknowledged_in_the_end(site):
    site.publish(b"%LMQ%amqp%|2f%work", parent=SAMPLED)
    pop, offset = site.take(b"%LMQ%amqp%|2f%work")
    pop.nack(offset)
    pop, offset = site.take(b"%LMQ%amqp%|2f%work")
    pop.ack(offset)
    assert [span.name.split()[0] for span in site.exporter.get_finished_spans()] == [
        "route",
        "publish",
        "deliver",
        "ack",
    ]
    assert not site.tracer.is_following


def test_others_in_the_same_queue_are_not_taken_for_it(site):
    name = b"%LMQ%amqp%|2f%work"
    site.publish(name)
    site.publish(name, parent=SAMPLED, count=3, at=1)
    site.publish(name)
    pop, first = site.take(name, count_max=2)
    assert first == 0
    assert "deliver" not in site.spans()
    pop.ack(0)
    pop.ack(1)
    assert "ack" not in site.spans()
    pop, offset = site.take(name, count_max=1)
    assert offset == 2
    pop.ack(2)
    assert "ack" in site.spans()


def test_what_is_followed_is_bounded(site, monkeypatch):
    monkeypatch.setattr(tracer_module, "FOLLOWED_MAX", 3)
    for _ in range(5):
        site.publish(b"%LMQ%mqtt%a", parent=SAMPLED)
    site.read(b"%LMQ%mqtt%a")
    delivered = [span for span in site.exporter.get_finished_spans() if span.name.startswith("deliver")]
    assert len(delivered) == 3


def test_a_subscription_is_delivered_when_its_queue_is_read(site):
    site.publish(b"%LMQ%mqtt%plant|h", parent=SAMPLED)
    site.at_ns += 9_000
    site.read(b"%LMQ%mqtt%plant|h")
    site.read(b"%LMQ%mqtt%plant|h")
    spans = [span for span in site.exporter.get_finished_spans() if span.name.startswith("deliver")]
    assert [span.end_time - span.start_time for span in spans] == [9_000]


def test_messages_that_are_not_chosen_leave_no_span(site):
    site.publish(b"%LMQ%mqtt%a")
    site.read(b"%LMQ%mqtt%a")
    assert site.exporter.get_finished_spans() == ()


def test_the_tracer_is_the_engines_alone():
    assert TracedEngine.tracer is None
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = MessageTracer(provider.get_tracer("t"), Choice(1), lambda: NOW_MS)
    tracer.note_taken(b"none", 0, 1 << 40)
    tracer.note_done(b"none", 0, 1 << 40)
    assert exporter.get_finished_spans() == ()
