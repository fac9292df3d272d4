from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from core.lmq.queue_name import NAME_BYTES_MAX, amqp_queue_name, mqtt_queue_name
from lmq import amqp_queue, mqtt_queue


def test_light_queues_are_named_after_filters_and_queues():
    assert mqtt_queue("site/+/temp") == "%LMQ%mqtt%site%|p%temp"
    assert amqp_queue("work") == "%LMQ%amqp%|2f%work"
    assert amqp_queue("work", vhost="v") == "%LMQ%amqp%v%work"


LEVELS = st.just("+") | st.text(st.characters(codec="utf-8", exclude_characters="/+#\0"), max_size=75)
FILTERS = st.lists(LEVELS, min_size=1, max_size=4).flatmap(
    lambda levels: st.sampled_from(["/".join(levels), "/".join([*levels, "#"])])
)


@given(FILTERS.filter(bool))
def test_any_filter_is_what_the_gateway_makes_of_it(text):
    assert mqtt_queue(text).encode() == mqtt_queue_name(text.encode())
    assert len(mqtt_queue(text)) <= NAME_BYTES_MAX


@given(st.text(st.characters(codec="utf-8"), max_size=150), st.text(st.characters(codec="utf-8"), max_size=20))
def test_any_queue_is_what_the_gateway_makes_of_it(text, vhost):
    assert amqp_queue(text, vhost).encode() == amqp_queue_name(vhost.encode(), text.encode())


@pytest.mark.parametrize("text", ["", "a/#/b", "a#", "#/", "a+/b", "a/+b", "a\0"])
def test_what_is_no_topic_filter_has_no_light_queue(text):
    with pytest.raises(ValueError, match=r"^topic filter '"):
        mqtt_queue(text)


@pytest.mark.parametrize("text", ["#", "+", "/", "+/#", "a//b", "$share/g/a/#"])
def test_wildcards_are_whole_levels(text):
    assert mqtt_queue(text).startswith("%LMQ%mqtt%")
