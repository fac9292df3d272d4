from __future__ import annotations

import pytest

from gateway.bridges.rules import Rules, matches
from gateway.settings.bridges import BridgeSettings


def rules(*topics):
    return Rules(BridgeSettings(address="h:1", topics=topics))


def test_topics_change_their_prefix_on_the_way_and_back():
    both = {"filter": "t/#", "direction": "both", "local_prefix": "here/", "remote_prefix": "there/x/"}
    found = rules(both)
    (out,) = found.outgoing["here/t/#"]
    (came,) = found.incoming
    assert out.rename("here/t/1") == "there/x/t/1"
    assert came.topic_filter == "there/x/t/#"
    assert came.rename("there/x/t/1") == "here/t/1"


def test_one_subscription_serves_all_rules_of_its_filter():
    found = rules(
        {"filter": "a", "qos": 0}, {"filter": "a", "remote_prefix": "p/", "qos": 1}, {"filter": "b", "qos": 0}
    )
    assert found.subscriptions() == [("a", 1), ("b", 0)]
    assert len(found.outgoing["a"]) == 2
    assert found.incoming == []


@pytest.mark.parametrize(
    ("topic_filter", "topic", "is_match"),
    [
        ("a/#", "a", True), ("a/#", "a/b/c", True), ("#", "a/b", True), ("#", "$SYS/a", False), ("+/a", "$x/a", False),
        ("a/+", "a/b", True), ("a/+", "a", False), ("a/+", "a/b/c", False), ("a/+/c", "a//c", True), ("a", "b", False),
        ("+", "a", True), ("$SYS/#", "$SYS/a", True), ("a/b/#", "a", False),
    ],
)  # fmt: skip
def test_filters_match_as_mqtt_says(topic_filter, topic, is_match):
    assert matches(topic_filter, topic) is is_match
