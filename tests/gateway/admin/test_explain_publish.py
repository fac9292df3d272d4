from __future__ import annotations

from contextlib import asynccontextmanager

import aio_pika
import pytest

from gateway.admin.explain import QuestionError
from gateway.admin.explain_publish import Publish, explain_publish, read_headers
from gateway.auth.user_rows import KeyRow, NameRow
from gateway.settings.models import AuthSettings
from tests.support.admin import make_view
from tests.support.gateway import running_gateway

pytestmark = pytest.mark.asyncio


@asynccontextmanager
async def _channel(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        url = "amqp://guest:guest@{}:{}/".format(*gateway.listening["amqp"])
        async with await aio_pika.connect(url) as connection:
            yield gateway, await connection.channel()


def _ask(gateway, exchange="", key="", *, headers=(), queue=None, door="amqp", topic=None, user=None, said=()):
    asked = Publish(door, "/", exchange, key, topic, headers, user, queue, said)
    return explain_publish(make_view(gateway), asked)


def _reached(found):
    return {queue.name.rpartition("%")[2]: queue.bindings for queue in found.queues}


async def test_headers_chains_and_alternates_are_followed_and_told(tmp_path):
    async with _channel(tmp_path) as (gateway, channel):
        red, rest = [await channel.declare_queue(name) for name in ("red", "rest")]
        await channel.declare_exchange("others", "fanout")
        colours = await channel.declare_exchange("colours", "headers", arguments={"alternate-exchange": "others"})
        entry = await channel.declare_exchange("entry", "topic")
        await colours.bind(entry, "paint.#")
        await red.bind(colours, arguments={"x-match": "all", "colour": "red", "coats": 2})
        await rest.bind("others")
        found = await _ask(gateway, "entry", "paint.wall", headers=["colour=red", "coats=2"])
        assert _reached(found) == {"red": ["entry paint.# > colours all"]}
        assert [(one.name, one.kind, one.by) for one in found.exchanges] == [
            ("entry", "topic", ""),
            ("colours", "headers", "entry paint.#"),
        ]
        found = await _ask(gateway, "entry", "paint.wall", headers=["colour=red", 'coats="2"'], queue="red")
        assert _reached(found) == {"rest": ["entry paint.# > colours (alternate) > others rest"]}
        assert found.why_not == [
            "exchange 'colours': a header has another value, or type, than the binding asks for: coats, colour"
        ]
        found = await _ask(gateway, "entry", "paint.wall", headers=["colour=red"], queue="red")
        assert found.why_not == ["exchange 'colours': the message lacks what the binding asks for: coats"]
        found = await _ask(gateway, "entry", "wood", queue="red")
        assert found.why_not == ["exchange 'colours' is bound to it, but is not reached from exchange 'entry'"]


async def test_why_a_queue_does_not_get_a_message_is_said_of_each_binding(tmp_path):
    async with _channel(tmp_path) as (gateway, channel):
        queue = await channel.declare_queue("q", durable=True)
        found = await _ask(gateway, "", "other", queue="q")
        assert found.why_not == [
            "the default exchange leads to the queue that is named like the routing key, which is 'other'"
        ]
        assert (await _ask(gateway, "", "q", queue="q")).why_not == []
        assert (await _ask(gateway, "amq.direct", "k", queue="q")).why_not == ["the queue is bound to no exchange"]
        await queue.bind("amq.direct", "one")
        await queue.bind("amq.topic", "a.*")
        assert (await _ask(gateway, "amq.direct", "k", queue="q")).why_not == [
            "exchange 'amq.direct': the binding key is 'one', the routing key 'k'",
            "exchange 'amq.topic' is bound to it, but is not reached from exchange 'amq.direct'",
        ]
        assert (await _ask(gateway, "amq.topic", "a.b.c", queue="q")).why_not == [
            "exchange 'amq.direct' is bound to it, but is not reached from exchange 'amq.topic'",
            "exchange 'amq.topic': the binding key 'a.*' does not match the routing key 'a.b.c'",
        ]
        assert (await _ask(gateway, door="mqtt", topic="a/b", queue="q")).why_not == []
        assert (await _ask(gateway, queue="none")).why_not == ["no queue 'none' in vhost '/'"]


async def test_each_door_shows_names_and_headers_in_its_own_way(tmp_path):
    async with _channel(tmp_path) as (gateway, _):
        found = await _ask(gateway, "amq.topic", "plant.1", headers=["site=north", "level=3"])
        assert found.shown == {
            "amqp": {
                "exchange": "amq.topic",
                "routing_key": "plant.1",
                "header site": "north",
                "header level": "3",
            },
            "mqtt": {
                "topic": "plant/1",
                "user property site": "north",
                "user property level": "3",
                "user property x-amqp-types": "blevel=",  # by which it comes back as a number
            },
            "rocketmq": {
                "topic": "LMQ_PARENT",
                "property LMQ_TOPIC": "plant/1",
                "property site": "north",
                "property level": "3",
                "property x-amqp-types": "blevel=",
            },
        }
        found = await _ask(gateway, "amq.direct", "k")
        assert "mqtt" not in found.shown
        assert found.shown["rocketmq"]["property LMQ_EXCHANGE"] == "amq.direct"
        found = await _ask(gateway, door="mqtt", topic="a/b.c")
        assert (found.exchange, found.topic) == ("amq.topic", "a/b.c")
        assert found.shown["amqp"]["routing_key"] == found.routing_key != "a.b.c"


async def test_what_a_user_may_is_told(tmp_path):
    async with _channel(tmp_path) as (gateway, _):
        assert (await _ask(gateway, "amq.direct", "k")).is_allowed is None
        found = await _ask(gateway, "amq.direct", "k", user="nobody")
        assert (found.is_allowed, found.verdict) == (False, "user 'nobody' does not come in by this door")
        rights = AuthSettings.model_validate({"rules": [{"permit": "deny", "topics": ["secret/#"]}]})
        gateway.authenticator.reload(rights, {})
        found = await _ask(gateway, door="mqtt", topic="secret/a", user="")
        text = "user '' may not publish to topic 'secret/a' by auth.rules[0]"
        assert (found.is_allowed, found.verdict) == (False, text)
        assert (await _ask(gateway, door="mqtt", topic="a", user="")).is_allowed
        assert (await _ask(gateway, "amq.direct", "k", user="guest")).is_allowed


async def test_rule_that_lets_is_told_and_topic_permissions_that_do_not(tmp_path):
    async with _channel(tmp_path) as (gateway, channel):
        await channel.declare_exchange("orders", "topic")
        rule = {"permit": "allow", "users": ["bob"], "topics": ["a/#"]}
        gateway.authenticator.reload(AuthSettings.model_validate({"rules": [rule]}), {})
        stored = gateway.authenticator.stored
        stored.put_user("bob", "", (), "")
        stored.set_names("/", "bob", NameRow(".*", ".*", ".*"))
        stored.set_keys("/", "bob", "orders", KeyRow("^new", ".*"))
        found = await _ask(gateway, "amq.topic", "a.b", user="bob")
        assert (found.is_allowed, found.verdict) == (True, "user 'bob' may publish to topic 'a/b' by auth.rules[0]")
        assert (await _ask(gateway, "orders", "new.1", user="bob")).is_allowed
        found = await _ask(gateway, "orders", "old.1", user="bob")
        text = "write access to topic 'old.1' in exchange 'orders' in vhost '/' refused for user 'bob'"
        assert (found.is_allowed, found.verdict) == (False, f"{text} by the user's topic permissions")


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ({"exchange": "none"}, "no exchange 'none' in vhost '/'"),
        ({"topic": "a"}, "a message of AMQP has an exchange and a routing key, and no topic"),
        ({"door": "mqtt"}, "a message of this door has a topic; of RocketMQ it is the property LMQ_TOPIC"),
        ({"door": "rocketmq", "topic": "a/#"}, "a/# is a filter, with"),
        ({"headers": ["odd"]}, "odd is not a header: give NAME=VALUE"),
        ({"headers": ["n" * 300 + "=1"]}, "a name of a header is longer than 255 bytes"),
    ],
)
async def test_a_question_that_has_no_answer_is_refused_with_the_reason(tmp_path, question, reason):
    async with _channel(tmp_path) as (gateway, _):
        with pytest.raises(QuestionError, match=reason.replace("+", "\\+")):
            await _ask(gateway, **question)


async def test_headers_are_texts_unless_json_says_otherwise():
    said = ["a=red", "b=5", "c=1.5", "d=true", 'e="5"', "f=[1]", "g=null", "h="]
    assert read_headers(said) == {
        "a": "red",
        "b": 5,
        "c": 1.5,
        "d": True,
        "e": "5",
        "f": "[1]",
        "g": "null",
        "h": "",
    }


async def test_properties_are_told_as_each_door_will_show_them(tmp_path):
    async with _channel(tmp_path) as (gateway, channel):
        entry = await channel.declare_exchange("entry", "fanout")
        topics = await channel.get_exchange("amq.topic")
        await topics.bind(entry)
        said = ["priority=5", "expiration=90500", "correlation_id=c1", "content_type=text/plain", "type=order"]
        for exchange in ("entry", "amq.topic"):
            shown = (await _ask(gateway, exchange, "a.b", headers=["n=1"], said=said)).shown
            assert shown["amqp"] == {
                "exchange": exchange, "routing_key": "a.b", "priority": "5", "expiration": "90500",
                "correlation_id": "c1", "content_type": "text/plain", "type": "order", "header n": "1",
            }  # fmt: skip
            assert shown["mqtt"] == {
                "topic": "a/b", "content type": "text/plain", "message expiry interval": "90", "correlation data": "c1",
                "user property n": "1", "user property x-amqp-types": "bn=", "user property x-amqp-priority": "5",
                "user property x-amqp-type": "order",
            }  # fmt: skip
            assert ("property LMQ_EXCHANGE" in shown["rocketmq"]) == (exchange == "entry")
            assert shown["rocketmq"]["property LMQ_TTL_MS"] == "90500"


@pytest.mark.parametrize("said", ["odd=1", "priority", "priority=high", "priority=1000", "priority=256"])
async def test_property_that_cannot_be_is_refused(tmp_path, said):
    async with _channel(tmp_path) as (gateway, _):
        with pytest.raises(QuestionError, match=r"is not a property|is a number|cannot be sent"):
            await _ask(gateway, "amq.topic", "a", said=[said])


async def test_headers_exchange_behind_amq_topic_is_told_by_the_headers_of_the_message(tmp_path):
    async with _channel(tmp_path) as (gateway, channel):
        red = await channel.declare_queue("red", durable=True)
        colours = await channel.get_exchange("amq.headers")
        await red.bind(colours, arguments={"x-match": "all", "colour": "red"})
        await colours.bind("amq.topic", "paint.#")
        found = await _ask(gateway, "amq.topic", "paint.wall", headers=["colour=red"])
        assert _reached(found) == {"red": ["amq.topic paint.# > amq.headers all"]}
        found = await _ask(gateway, door="mqtt", topic="paint/wall", headers=["colour=blue"], queue="red")
        assert _reached(found) == {}
        assert found.why_not == [
            "exchange 'amq.headers': a header has another value, or type, than the binding asks for: colour"
        ]


async def test_an_exchange_that_delays_is_told_on_the_way_with_how_long_the_message_waits(tmp_path):
    async with _channel(tmp_path) as (gateway, channel):
        at_once, later = [await channel.declare_queue(name) for name in ("at-once", "later-on")]
        entry = await channel.declare_exchange("entry", "direct")
        late = await channel.declare_exchange("late", "x-delayed-message", arguments={"x-delayed-type": "direct"})
        await late.bind(entry, "a")
        await at_once.bind(entry, "a")
        await later.bind(late, "a")
        found = await _ask(gateway, "entry", "a", headers=["x-delay=5000"])
        assert found.waits_ms == 5_000
        assert _reached(found) == {"at-once": ["entry a"], "later-on": ["entry a > late (waits 5000 ms) a"]}
        found = await _ask(gateway, "entry", "a")
        assert found.waits_ms == 0
        assert _reached(found) == {"at-once": ["entry a"], "later-on": ["entry a > late a"]}
        await late.bind("amq.topic", "plant.#")
        await later.bind(late, "plant.1")
        found = await _ask(gateway, door="mqtt", topic="plant/1", headers=["x-delay=5000"])
        assert _reached(found) == {"later-on": ["amq.topic plant.# > late (waits 5000 ms) plant.1"]}
