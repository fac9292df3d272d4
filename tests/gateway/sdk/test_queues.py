from __future__ import annotations

from gateway.sdk import amqp_queue, mqtt_queue


def test_light_queues_are_named_after_filters_and_queues():
    assert mqtt_queue("site/+/temp") == "%LMQ%mqtt%site%|p%temp"
    assert amqp_queue("work") == "%LMQ%amqp%|2f%work"
    assert amqp_queue("work", vhost="v") == "%LMQ%amqp%v%work"
