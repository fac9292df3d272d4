from __future__ import annotations

from contextlib import asynccontextmanager

import aio_pika
import pytest

from gateway.admin.explain import QuestionError
from gateway.admin.explain_publish import Publish, explain_publish, read_headers
from gateway.settings import AuthSettings
from tests.support.admin import make_view
from tests.support.gateway import running_gateway

pytestmark = pytest.mark.asyncio


@asynccontextmanager
async def _channel(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        url = "amqp://guest:guest@{}:{}/".format(*gateway.listening["amqp"])
        async with await aio_pika.connect(url) as connection:
            yield gateway, await connection.channel()


def _ask(gateway, exchange="", key="", *, headers=(), queue=None, door="amqp", topic=None, user=None):
    return explain_publish(make_view(gateway), Publish(door, "/", exchange, key, topic, headers, user, queue))


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


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ({"exchange": "none"}, "no exchange 'none' in vhost '/'"),
        ({"topic": "a"}, "a message of AMQP has an exchange and a routing key, and no topic"),
        ({"door": "mqtt"}, "a message of this door has a topic; of RocketMQ it is the property LMQ_TOPIC"),
        ({"door": "rocketmq", "topic": "a/#"}, "a/# is a filter, with"),
        ({"headers": ["odd"]}, "odd is no header: NAME=VALUE"),
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
