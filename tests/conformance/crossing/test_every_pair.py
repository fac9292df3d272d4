"""All pairs of protocols, and all that a message carries: equal, or listed in docs/protocols/crossing.md."""

from __future__ import annotations

import re

import pytest

from tests.support.crossing import AGE_MS, DOORS, CrossingWorld
from tests.support.engines import MAKERS
from tests.support.mqtt_door import NOW_MS
from tests.support.sources import ROOT

TYPED = [
    (b"whole", 5, b"5"),
    (b"yes", True, b"true"),
    (b"float", 1.5, b"1.5"),
    (b"nothing", None, b""),
    (b"table", {"a": [1, "b", None], "c": {"d": False}}, b'{"a":[1,"b",null],"c":{"d":false}}'),
]
# What each property is as a message's fields.
PROPERTIES = {
    "topic": {},
    "body": {},
    "QoS 0": {"qos": 0},
    "QoS 1": {"qos": 1},
    "QoS 2": {"qos": 2},
    "retain": {"retain": True},
    "content type": {"content type": b"text/plain"},
    "content type with U+0001": {"content type": b"a\1b%"},
    "time to live": {"time to live": 60},
    "payload format": {"payload format": 1},
    "response topic": {"response topic": b"answers/to/1"},
    "response topic with a dot": {"response topic": b"answers/v1.2"},
    "correlation": {"correlation": b"c=7%"},
    "correlation of bytes": {"correlation": bytes(range(256)) + b"\xff"},
    "user properties": {"user properties": [(b"unit", b"kW"), ("größe".encode(), b"2"), (b"a", b"")]},
    "user properties of one name": {"user properties": [(b"a", b"1"), (b"b", b"2"), (b"a", b"3")]},
    "user properties with names of the log": {"user properties": [(b"LMQ_X", b"1")]},
    "user properties with names that RocketMQ reserves": {"user properties": [(b"WAIT", b"1")]},
    "user properties with U+0001 or U+0002": {"user properties": [(b"a\1b", b"c\2d")]},
    "user properties with names of over 255 bytes": {"user properties": [(b"n" * 256, b"1")]},
    "typed headers": {"typed headers": TYPED},
    "content encoding": {"content encoding": b"gzip"},
    "priority": {"priority": 5},
    "message id": {"message id": b"m-1"},
    "timestamp": {"timestamp": 1_790_000_123},
    "type": {"type": b"order"},
    "user id": {"user id": b"guest"},
    "app id": {"app id": b"till"},
    "cluster id": {"cluster id": b"c1"},
    "keys and tags": {"keys and tags": (b"k1 k2", b"red")},
    "publisher": {},
    "time of birth": {"born": NOW_MS},
}
ALWAYS = {"topic": ("topic",), "body": ("body",), "publisher": ("publisher",)}
PAIRS = [(source, target) for source in DOORS for target in DOORS]


def listed_losses():
    """Return source, target and property of each loss that the document lists, with the number of its row."""
    text = (ROOT / "docs/protocols/crossing.md").read_text()
    table = text.partition("## What is lost")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", table, re.MULTILINE)[1:]
    found = {}
    for number, (names, sources, targets, reason) in enumerate(rows):
        assert len(reason) > 10, names
        for name in names.split("; "):
            assert name in PROPERTIES, name
            for source in DOORS if sources == "all" else sources.split(", "):
                for target in DOORS if targets == "all" else targets.split(", "):
                    assert (source, target) in PAIRS
                    assert (source, target, name) not in found, f"{name} from {source} to {target} is listed twice"
                    found[source, target, name] = number
    return found


@pytest.fixture(scope="module", params=MAKERS)
def crossed(request, tmp_path_factory):
    """Source, target and property of everything that was carried, in one gateway; every message waits 10 s."""
    world = CrossingWorld(tmp_path_factory.mktemp("crossing"), make_engine=MAKERS[request.param])
    world.listen()
    said = {}
    for source in DOORS:
        for number, (name, fields) in enumerate(PROPERTIES.items()):
            body = f"{source} {name}".encode() + b"\0\xff"
            said[source, name] = world.publish(source, {"topic": b"plant/%d" % number, "body": body} | fields)
    world.now_ms += AGE_MS
    carried = set()
    for target in DOORS:
        heard = world.hear(target)
        for (source, name), fields in said.items():
            got = heard[fields["body"]]
            wanted = ALWAYS.get(name) or tuple(PROPERTIES[name])
            if all(one in fields and is_told(one, fields[one], got) for one in wanted):
                carried.add((source, target, name))
    world.close()
    return carried


def is_told(field, value, heard):
    if field == "user properties":
        return [one for one in heard.get(field, ()) if one[0] != b"UNIQ_KEY"] == value
    if field == "typed headers" and "typed" in heard:  # AMQP
        return heard["typed"] == [(name, one) for name, one, _ in value]
    return heard.get(field) == value


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_what_comes_out_equals_what_went_in_or_is_listed(crossed, source, target):
    lost = {name for name in PROPERTIES if (source, target, name) not in crossed}
    listed = {name for from_, to, name in listed_losses() if (from_, to) == (source, target)}
    assert lost - listed == set(), "lost, and not listed"
    assert listed - lost == set(), "listed, and not lost"
