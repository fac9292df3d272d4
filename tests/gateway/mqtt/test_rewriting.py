"""Topics that become others, as EMQX does it."""

from __future__ import annotations

import pytest

from core.cache_budget import CacheBudget
from gateway.mqtt.rewriting import Rewriting
from gateway.settings.models import GatewaySettings, MqttSettings
from gateway.settings.topic_rules import RewriteRule
from tests.support.mqtt import puback, publish, publish_5, subscribe, unsubscribe
from tests.support.mqtt_5 import P, encoded, enter

RULES = (
    RewriteRule(action="all", source="x/#", pattern="^x/y/(.+)$", destination="z/y/x/$1"),
    RewriteRule(action="publish", source="y/+/z/#", pattern="^y/([^/]+)/z/(.+)$", destination="y/z/$2/%c/${username}"),
    RewriteRule(action="subscribe", source="s/#", pattern="^s/(.+)$", destination="t/$1/${clientid}"),
)


def rewriting(*rules):
    return Rewriting(rules or RULES, CacheBudget())


@pytest.mark.parametrize(
    ("topic", "becomes"),
    [
        (b"x/y/2", b"z/y/x/2"),
        (b"x/1/2", b"x/1/2"),  # its rule's pattern does not match
        (b"y/a/z/b", b"y/z/b/c/u"),
        (b"y/def", b"y/def"),
        (b"s/1", b"s/1"),
    ],
)
def test_published_topics(topic, becomes):
    rules = rewriting()
    assert [rules.published(topic, b"c", b"u") for _ in range(2)] == [becomes] * 2


@pytest.mark.parametrize(
    ("topic_filter", "becomes"),
    [
        (b"s/1", b"t/1/c"),
        (b"s/+", b"t/+/c"),
        (b"$share/g/s/1", b"$share/g/t/1/c"),
        (b"$queue/x/y/#", b"$queue/z/y/x/#"),
        (b"$replay/-1h/s/1", b"$replay/-1h/t/1/c"),
        (b"y/a/z/b", b"y/a/z/b"),
        (b"$exclusive/", b"$exclusive/"),
    ],
)
def test_filters(topic_filter, becomes):
    assert rewriting().subscribed(topic_filter, b"c", b"u") == becomes


def test_first_rule_whose_source_matches_is_the_one():
    first = RewriteRule(source="x/#", pattern="^x/1$", destination="a")
    second = RewriteRule(source="x/+", pattern="^x/(.)$", destination="b/$1")
    rules = rewriting(first, second)
    assert [rules.published(topic, b"", b"") for topic in (b"x/1", b"x/2")] == [b"a", b"x/2"]


def test_what_would_be_no_topic_stays():
    rules = rewriting(RewriteRule(source="#", pattern="^(.+)$", destination="%c"))
    assert rules.published(b"t", b"a/+", b"") == b"t"
    assert rules.subscribed(b"t", b"a#", b"") == b"t"
    assert rules.published(b"t", b"", b"") == b"t"
    assert rules.published(b"t", b"c", b"") == b"c"


def test_clients_are_none_the_wiser(make_world):
    world = make_world(rewrite=RULES)
    plain = world.client(b"s", (b"z/#", 1), (b"y/#", 1))
    peer = world.client(b"c", (b"x/y/+", 0))
    peer.send(
        publish(b"x/y/1", b"one", qos=1, packet_id=1), publish(b"y/a/z/b", b"two", retain=True), publish(b"o", b"-")
    )
    packets = peer.take()
    assert puback(1) in packets
    assert sorted((one.topic, one.body) for one in plain.take_deliveries()) == [
        (b"y/z/b/c/", b"two"),
        (b"z/y/x/1", b"one"),
    ]
    peer.send(unsubscribe(2, b"x/y/+"), publish(b"x/y/1", b"three"))
    assert not [one for one in peer.take() if one[0] >> 4 == 3]
    late = world.connect(b"l").send(subscribe(1, (b"y/z/b/c/", 0)))
    assert late.bodies() == [b"two"]


def test_wills_and_aliases_are_rewritten_too(make_world):
    world = make_world(rewrite=RULES)
    plain = world.client(b"s", (b"z/#", 0))
    peer = enter(world, b"c", will=(b"x/y/w", b"gone", 0, False, b"\0"))
    peer.send(publish_5(b"x/y/1", b"a", encoded((P.TOPIC_ALIAS, 1))), publish_5(b"", b"b", encoded((P.TOPIC_ALIAS, 1))))
    peer.vanish()
    got = [(one.topic, one.body) for one in plain.take_deliveries()]
    assert got == [(b"z/y/x/1", b"a"), (b"z/y/x/1", b"b"), (b"z/y/x/w", b"gone")]


def test_the_topic_of_a_will_behind_its_delay_is_rewritten(make_world):
    world = make_world(rewrite=RULES)
    plain = world.client(b"s", (b"z/#", 0))
    world.client(b"c", will=(b"$delayed/0/x/y/w", b"gone", 0, False)).vanish()
    assert [one.topic for one in plain.take_deliveries()] == [b"z/y/x/w"]


def test_nobody_gets_at_the_sys_tree_that_way(make_world):
    world = make_world(rewrite=(RewriteRule(source="a", pattern="^a$", destination="$SYS/broker/version"),))
    watcher = world.client(b"s", (b"$SYS/#", 0))
    watcher.take()
    world.client(b"p").send(publish(b"a", b"x"))
    assert watcher.take() == []


def test_rules_may_change_while_it_runs(world):
    plain = world.client(b"s", (b"#", 0))
    peer = world.client(b"p").send(publish(b"x/y/1", b"before"))
    world.door.reload(GatewaySettings(mqtt=MqttSettings(rewrite=RULES)))
    peer.send(publish(b"x/y/1", b"after"))
    assert [one.topic for one in plain.take_deliveries()] == [b"x/y/1", b"z/y/x/1"]
