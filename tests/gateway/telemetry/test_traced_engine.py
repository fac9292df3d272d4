from __future__ import annotations

from array import array

import pytest

from core.errors import StoreClosedError
from core.message import StoredBatch
from tests.gateway.telemetry.test_choosing import SAMPLED
from tests.support.store import NOW_MS, make_batch
from tests.support.telemetry import TracedBroker


@pytest.fixture
def site(tmp_path):
    site = TracedBroker(tmp_path)
    yield site
    site.close()


def delivered(site):
    return sorted(span.name for span in site.exporter.get_finished_spans() if span.name.startswith("deliver"))


def test_each_queue_of_a_message_has_its_own_delivery(site):
    names = (b"%LMQ%mqtt%a", b"%LMQ%mqtt%|p", b"%LMQ%amqp%|2f%work")
    site.publish(*names, parent=SAMPLED)
    site.read(names[0])
    site.take(names[2])
    assert delivered(site) == ["deliver %LMQ%amqp%|2f%work", "deliver %LMQ%mqtt%a"]


def test_places_are_right_where_a_batch_goes_to_several_queues(site):
    broker = site.broker
    both = broker.route_queues(b"", [b"%LMQ%amqp%|2f%x", b"%LMQ%amqp%|2f%y"])
    one = broker.route_queues(b"", [b"%LMQ%amqp%|2f%y"])
    said = b"traceparent\x01" + SAMPLED.encode() + b"\x02"
    batch = make_batch([(one, b"0"), (both, b"1", said), (None, b"-"), (one, b"2"), (both, b"3")])
    broker.publish_batch(batch, NOW_MS)
    site.take(b"%LMQ%amqp%|2f%y", count_max=1)
    assert delivered(site) == []
    site.take(b"%LMQ%amqp%|2f%y", count_max=1)
    site.take(b"%LMQ%amqp%|2f%x", count_max=1)
    assert delivered(site) == ["deliver %LMQ%amqp%|2f%x", "deliver %LMQ%amqp%|2f%y"]


def test_a_topic_of_rocketmq_is_delivered_when_its_queue_is_read(site):
    broker = site.broker
    route = broker.route_rocketmq(b"orders", 3, ())
    broker.publish_batch(make_batch([(route, b"x", b"traceparent\x01" + SAMPLED.encode() + b"\x02")]), NOW_MS)
    site.read(b"orders/3")
    assert delivered(site) == ["deliver orders/3"]


def test_messages_that_are_read_by_their_offsets_count_too(site):
    site.publish(b"%LMQ%mqtt%a", parent=SAMPLED)
    into = StoredBatch(4)
    site.engine.read_offsets(site.broker.find_queue(b"%LMQ%mqtt%a"), array("q", [0]), 1, into)
    assert delivered(site) == ["deliver %LMQ%mqtt%a"]


def test_a_batch_that_is_refused_leaves_no_span(site):
    route = site.broker.route_queues(b"", [b"%LMQ%mqtt%a"])
    said = b"traceparent\x01" + SAMPLED.encode() + b"\x02"
    site.store.close()
    with pytest.raises(StoreClosedError):
        site.broker.publish_batch(make_batch([(route, b"x", said)]), NOW_MS)
    assert site.exporter.get_finished_spans() == ()
