from __future__ import annotations

import pytest

from gateway.demo.plan import CONSUMERS, Consumer, Device, filter_matches, key_matches, light_queues


@pytest.mark.parametrize(
    ("topic_filter", "topic", "covers"),
    [
        ("a/b", "a/b", True),
        ("a/b", "a/b/c", False),
        ("a/+", "a/b", True),
        ("a/+", "a", False),
        ("a/+", "a/", True),
        ("a/#", "a", True),
        ("a/#", "a/b/c", True),
        ("a/#", "ab", False),
        ("#", "a/b", True),
        ("#", "$SYS/x", False),
        ("+/x", "$SYS/x", False),
        ("$SYS/#", "$SYS/x", True),
        ("+/+", "/x", True),
    ],
)
def test_filters_cover_what_mqtt_says(topic_filter, topic, covers):
    assert filter_matches(topic_filter, topic) is covers


@pytest.mark.parametrize(
    ("binding_key", "routing_key", "covers"),
    [
        ("a.b", "a.b", True),
        ("a.*", "a.b", True),
        ("a.*", "a", False),
        ("a.#", "a", True),
        ("#.b", "b", True),
        ("#.b", "a.a.b", True),
        ("#.b", "a.b.a", False),
        ("#.a.#", "x.a.y", True),
        ("#", "", True),
        ("*", "a.b", False),
    ],
)
def test_binding_keys_cover_what_amqp_says(binding_key, routing_key, covers):
    assert key_matches(binding_key, routing_key) is covers


def test_a_message_belongs_to_a_consumer_once_by_however_many_filters():
    topic = "plant/north/line1/device-0001/power"
    energy = next(consumer for consumer in CONSUMERS if consumer.name == "energy")
    assert energy.wants(topic)
    assert ("amqp", "energy") in light_queues(CONSUMERS, topic)


def test_consumers_of_one_filter_share_its_light_queue():
    twins = [Consumer(name, "mqtt", ("a/#",)) for name in ("one", "two")]
    reader = Consumer("three", "sdk", ("a/#",), queue="a/#")
    assert light_queues([*twins, reader], "a/b") == {("mqtt", "a/#")}


def test_what_a_device_publishes_is_the_same_in_each_run():
    device = Device(7)
    assert device.client_id == "device-0007"
    assert device.topic(3) == Device(7).topic(3)
    assert {device.kind(sequence) for sequence in range(40)} == {"temperature", "vibration", "power", "alarm"}
    assert all(device.qos(sequence) == 1 for sequence in range(40) if device.kind(sequence) == "alarm")


def test_every_consumer_gets_something_of_a_small_fleet_and_none_but_one_everything():
    topics = [Device(number).topic(sequence) for number in range(8) for sequence in range(20)]
    for consumer in CONSUMERS:
        wanted = sum(consumer.wants(topic) for topic in topics)
        assert wanted == len(topics) if consumer.name == "historian" else 0 < wanted < len(topics)


def test_a_consumer_that_is_away_asks_for_nothing_that_may_be_lost():
    (away,) = [consumer for consumer in CONSUMERS if consumer.is_away_for_a_while]
    for number in range(40):
        for sequence in range(20):
            if away.wants(Device(number).topic(sequence)):
                assert Device(number).qos(sequence) == 1
