"""Where a publish by any door would go, by which exchanges, whether a user may, and what each door shows of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pamqp.commands import Basic

from core.envelope import FIELD_OTHER, field_code
from core.lmq.topic_space import routing_key_from_topic, topic_from_routing_key
from core.properties import AMQP, EXCHANGE, ROUTING_KEY, TOPIC, decode_properties
from gateway.admin.explain import QuestionError, check_topic, explain_bindings, explain_space, get_exchange
from gateway.admin.schemas import ExplainedQueue, PassedExchange, PublishExplanation
from gateway.admin.view import AdminView
from gateway.amqp.errors import AmqpError
from gateway.amqp.exchanges import AMQ_TOPIC, exchange_right
from gateway.amqp.property_block import EXTRA_BYTES_MAX, BlockReader
from gateway.amqp.queues import VirtualHost
from gateway.amqp.tracing import Trace, say_why_not, trace_way
from gateway.amqp.traits import Traits
from gateway.auth.credentials import GUEST
from gateway.auth.permissions import ALL

AMQP_DOOR = "amqp"
NAME_BYTES_MAX = 255
AS_WRITTEN = (str, bool, int, float)


class Publish(NamedTuple):
    """A message that somebody may publish: by AMQP with exchange and key, by the other doors with a topic."""

    door: str
    vhost: str
    exchange: str
    key: str
    topic: str | None
    headers: Sequence[str]  # NAME=VALUE, the value in JSON or else a text
    user: str | None
    queue: str | None  # that it is asked of why it does not get the message


async def explain_publish(view: AdminView, publish: Publish) -> PublishExplanation:
    """Return where it would go.

    Raises:
        QuestionError: The question has no answer.
    """
    vhost = _find_vhost(view, publish)
    name, key = _find_target(publish)
    exchange = get_exchange(vhost, name)
    headers = read_headers(publish.headers)
    block = _encode(headers)
    traits = Traits(key, block)
    trace = trace_way(vhost.exchanges, exchange, key, traits)
    topic = topic_from_routing_key(key.encode()).decode()
    queues = await _explain_queues(view, vhost, trace, topic)
    is_allowed, verdict = _judge(view, publish, vhost, name, topic)
    light_names = {queue.name for queue in queues}
    return PublishExplanation(
        door=publish.door,
        vhost=vhost.name,
        exchange=name,
        kind=exchange.kind,
        routing_key=key,
        topic=topic,
        parent_topic=view.broker.parent_topic.decode(),
        is_topic_space=trace.is_topic_space,
        user=publish.user,
        is_allowed=is_allowed,
        verdict=verdict,
        waits_ms=traits.delay_ms() if exchange.is_delaying else 0,
        exchanges=[PassedExchange(name=one.name, kind=one.kind, by=by) for one, by in trace.passed.items()],
        queues=queues,
        shown=_show(view, name, key, headers, block, is_topic_space=_is_topic_space(vhost, name, topic)),
        queue=publish.queue,
        why_not=[] if publish.queue is None else _ask_why(vhost, trace, publish.queue, light_names, key, traits),
    )


def _find_vhost(view: AdminView, publish: Publish) -> VirtualHost:
    found = view.vhosts.find(publish.vhost) if publish.door == AMQP_DOOR else view.vhosts.topic_host
    if found is None:
        raise QuestionError(f"no vhost '{publish.vhost}'")
    return found


def _find_target(publish: Publish) -> tuple[str, str]:
    """Return the exchange and the routing key that a message is published by, or would be at AMQP."""
    if publish.door == AMQP_DOOR:
        if publish.topic is not None:
            raise QuestionError("a message of AMQP has an exchange and a routing key, and no topic")
        return publish.exchange, publish.key
    if publish.topic is None:
        raise QuestionError("a message of this door has a topic; of RocketMQ it is the property LMQ_TOPIC")
    check_topic(publish.topic)
    return AMQ_TOPIC, routing_key_from_topic(publish.topic.encode()).decode()


def read_headers(said: Sequence[str]) -> dict[str, str | bool | int | float]:
    """Return headers, each of them given as NAME=VALUE; a value that is no text, number or boolean of JSON is a text.

    Raises:
        QuestionError: One has no name or no value, or a name that is too long.
    """
    headers: dict[str, str | bool | int | float] = {}
    for each in said:
        name, equals, text = each.partition("=")
        if not name or not equals:
            raise QuestionError(f"{each} is no header: NAME=VALUE")
        if len(name.encode()) > NAME_BYTES_MAX:
            raise QuestionError(f"a name of a header is longer than {NAME_BYTES_MAX} bytes")
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        headers[name] = value if isinstance(value, AS_WRITTEN) else text
    return headers


def _encode(headers: Mapping[str, str | bool | int | float]) -> bytes:
    try:
        return Basic.Properties(headers=dict(headers)).marshal() if headers else Basic.Properties().marshal()
    except (ValueError, TypeError, OverflowError) as error:
        raise QuestionError(f"the headers cannot be sent: {error}") from error


async def _explain_queues(view: AdminView, vhost: VirtualHost, trace: Trace, topic: str) -> list[ExplainedQueue]:
    found = (
        {queue.name: queue for queue in await explain_space(view.broker, vhost, topic)} if trace.is_topic_space else {}
    )
    ways = {name: ways for name, ways in trace.queues.items() if vhost.find(name) is not None}
    for queue in await explain_bindings(view.broker, vhost, ways):
        found.setdefault(queue.name, queue)
        if len(queue.bindings) > len(found[queue.name].bindings):  # the topic space knows of no chains of exchanges
            found[queue.name].bindings = queue.bindings
    return [found[name] for name in sorted(found)]


def _is_topic_space(vhost: VirtualHost, exchange: str, topic: str) -> bool:
    return bool(topic) and exchange == AMQ_TOPIC and vhost.exchanges.topic_space is not None


def _judge(view: AdminView, publish: Publish, vhost: VirtualHost, name: str, topic: str) -> tuple[bool | None, str]:
    """Return whether a user may publish this, and why not."""
    user = publish.user
    if user is None:
        return None, ""
    may = view.authenticator.find_rights(publish.door, user)
    if may is None and user == GUEST and publish.door == AMQP_DOOR and view.authenticator.find_tags(user):
        may = ALL
    if may is None:
        return False, f"user '{user}' does not come in by this door"
    place, right = vhost.name.encode(), exchange_right(name)
    if publish.door == AMQP_DOOR and not may.may_enter(place):
        return False, f"access to vhost '{vhost.name}' refused for user '{user}'"
    if publish.door == AMQP_DOOR and not may.may_write(place, right.encode()):
        by = may.explain("write", right.encode(), place).by
        return False, f"write access to exchange '{right}' in vhost '{vhost.name}' refused for user '{user}' by {by}"
    if _is_topic_space(vhost, name, topic) and not may.may_publish(topic.encode()):
        by = may.explain("publish", topic.encode()).by
        return False, f"user '{user}' may not publish to topic '{topic}' by {by}"
    return True, f"user '{user}' may publish this"


def _ask_why(
    vhost: VirtualHost, trace: Trace, queue: str, light_names: set[str], key: str, traits: Traits
) -> list[str]:
    found = vhost.find(queue)
    if found is None:
        return [f"no queue '{queue}' in vhost '{vhost.name}'"]
    if queue in trace.queues or found.light_name.decode() in light_names:
        return []
    return say_why_not(vhost.exchanges, trace, queue, key, traits)


def _show(
    view: AdminView,
    exchange: str,
    key: str,
    headers: Mapping[str, object],
    block: bytes,
    *,
    is_topic_space: bool,
) -> dict[str, dict[str, str]]:
    """Return what each door tells of the message: at AMQP the names and headers, elsewhere what they become."""
    topic = topic_from_routing_key(key.encode()).decode()
    properties = _record_properties(block)
    own = {name: text for name, text in properties.items() if _is_users(name)}
    shown = {AMQP_DOOR: {"exchange": exchange, "routing_key": key, **_named("header", headers)}}
    if is_topic_space:
        shown["mqtt"] = {"topic": topic, **_named("user property", own)}
    place = {} if is_topic_space else {EXCHANGE.decode(): exchange, ROUTING_KEY.decode(): key}
    shown["rocketmq"] = {
        "topic": view.broker.parent_topic.decode(),
        **_named("property", {TOPIC.decode(): topic, **place, **properties}),
    }
    return shown


def _record_properties(block: bytes) -> dict[str, str]:
    reader, out = BlockReader(), bytearray(EXTRA_BYTES_MAX)
    try:
        reader.read(block, 0, len(block))
        end = reader.write_extra(block, 0, len(block), memoryview(out), 0)
    except AmqpError as error:
        raise QuestionError(error.reply_text) from error
    found = decode_properties(bytes(out[:end]))
    return {name.decode(): value.decode() for name, value in found.items() if name != AMQP}


def _is_users(name: str) -> bool:
    data = name.encode()
    return field_code(data, 0, len(data)) == FIELD_OTHER


def _named(what: str, values: Mapping[str, object]) -> dict[str, str]:
    return {f"{what} {name}": str(value) for name, value in values.items()}
