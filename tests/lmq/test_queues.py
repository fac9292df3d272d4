from __future__ import annotations

from hypothesis import given, strategies as st

from core.lmq.queue_name import NAME_BYTES_MAX, amqp_queue_name, mqtt_queue_name
from lmq import amqp_queue, mqtt_queue


def test_light_queues_are_named_after_filters_and_queues():
    assert mqtt_queue("site/+/temp") == "%LMQ%mqtt%site%|p%temp"
    assert amqp_queue("work") == "%LMQ%amqp%|2f%work"
    assert amqp_queue("work", vhost="v") == "%LMQ%amqp%v%work"


@given(st.text(st.characters(codec="utf-8"), max_size=150), st.text(st.characters(codec="utf-8"), max_size=20))
def test_any_name_is_what_the_gateway_makes_of_it(text, vhost):
    assert mqtt_queue(text).encode() == mqtt_queue_name(text.encode())
    assert amqp_queue(text, vhost).encode() == amqp_queue_name(vhost.encode(), text.encode())
    assert len(mqtt_queue(text)) <= NAME_BYTES_MAX
