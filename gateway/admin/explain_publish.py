"""Where a publish by any door would go, by which exchanges, whether a user may, and what each door shows of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from struct import error
from typing import NamedTuple

from pamqp.commands import Basic

from core.envelope import FIELD_OTHER, field_code
from core.lmq.topic_space import routing_key_from_topic, topic_from_routing_key
from core.properties import (
    AMQP,
    CONTENT_TYPE,
    CORRELATION,
    EXCHANGE,
    RESPONSE_TOPIC,
    ROUTING_KEY,
    TOPIC,
    TTL_MS,
    decode_properties,
)
from gateway.admin.explain import (
    BY_EACH,
    MissingError,
    QuestionError,
    check_topic,
    explain_bindings,
    explain_space,
    get_exchange,
    is_as_nameless,
)
from gateway.admin.publish_notes import find_notes
from gateway.admin.schemas import ExplainedQueue, PassedExchange, PublishExplanation
from gateway.admin.view import AdminView
from gateway.amqp.errors import AmqpError
from gateway.amqp.exchanges import AMQ_TOPIC, TOPIC as KEYED, Exchange, exchange_right
from gateway.amqp.property_block import EXTRA_BYTES_MAX, BlockReader
from gateway.amqp.queues import VirtualHost
from gateway.amqp.tracing import Trace, say_why_not, trace_way
from gateway.amqp.traits import Traits
from gateway.auth.credentials import GUEST
from gateway.auth.permissions import ALL, Permissions

AMQP_DOOR = "amqp"
NAME_BYTES_MAX = 255  # a short string of AMQP
AS_WRITTEN = (str, bool, int, float)
PROPERTIES = (
    "content_type", "content_encoding", "delivery_mode", "priority", "correlation_id", "reply_to", "expiration",
    "message_id", "type", "user_id", "app_id",
)  # fmt: skip
NUMBERS = ("delivery_mode", "priority")
DIGITS_MAX = 3  # an octet
OF_MQTT = {
    CONTENT_TYPE.decode(): "content type",
    TTL_MS.decode(): "message expiry interval",
    CORRELATION.decode(): "correlation data",
    RESPONSE_TOPIC.decode(): "response topic",
}


class Publish(NamedTuple):
    """A message that a client may publish: by AMQP with exchange and key, by the other doors with a topic."""

    door: str
    vhost: str
    exchange: str
    key: str
    topic: str | None
    headers: Sequence[str]  # NAME=VALUE, the value in JSON or else a text
    user: str | None
    queue: str | None  # that it is asked of why it does not get the message
    properties: Sequence[str] = ()  # NAME=VALUE, those of AMQP by their names there


async def explain_publish(view: AdminView, publish: Publish) -> PublishExplanation:
    """Return where it would go.

    Raises:
        QuestionError: The question has no answer.
    """
    vhost = _find_vhost(view, publish)
    name, key = _find_target(publish)
    exchange = get_exchange(vhost, name)
    headers = read_headers(publish.headers)
    properties = read_properties(publish.properties)
    block = encode_block(headers, properties)
    traits = Traits(key, block)
    trace = trace_way(vhost.exchanges, exchange, key, traits)
    topic = topic_from_routing_key(key.encode()).decode()
    queues = await _explain_queues(view, vhost, trace, topic)
    is_allowed, verdict = _judge(view, publish, vhost, exchange, key)
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
        waits_ms=traits.delay_ms() if any(one.is_delaying for one in trace.passed) else 0,
        exchanges=[PassedExchange(name=one.name, kind=one.kind, by=by) for one, by in trace.passed.items()],
        queues=queues,
        shown=_show(view, trace, (name, key), {**properties, **_named("header", headers)}, block),
        queue=publish.queue,
        notes=find_notes(vhost, trace, properties.get("priority", 0)),
        why_not=[] if publish.queue is None else _ask_why(vhost, trace, publish.queue, light_names, key, traits),
    )


def _find_vhost(view: AdminView, publish: Publish) -> VirtualHost:
    found = view.vhosts.find(publish.vhost) if publish.door == AMQP_DOOR else view.vhosts.topic_host
    if found is None:
        raise MissingError(f"no vhost '{publish.vhost}'")
    return found


def _find_target(publish: Publish) -> tuple[str, str]:
    """Return the exchange and the routing key that a message is published by, or would be at AMQP."""
    if publish.door == AMQP_DOOR:
        if publish.topic is not None:
            raise QuestionError("a message of AMQP has an exchange and a routing key, and no topic")
        return publish.exchange, publish.key
    if publish.topic is None:
        raise QuestionError("a message of this door has a topic; of RocketMQ it is the property LMQ_TOPIC")
    if publish.exchange or publish.key:
        raise QuestionError(f"a message of {publish.door} has a topic, and neither an exchange nor a routing key")
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
            raise QuestionError(f"{each} is not a header: give NAME=VALUE")
        if len(name.encode()) > NAME_BYTES_MAX:
            raise QuestionError(f"a name of a header is longer than {NAME_BYTES_MAX} bytes")
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        headers[name] = value if isinstance(value, AS_WRITTEN) else text
    return headers


def read_properties(said: Sequence[str]) -> dict[str, str | int]:
    """Return AMQP's properties, each of them given as NAME=VALUE.

    Raises:
        QuestionError: There is none of that name, or its value is no number where it is to be one.
    """
    properties: dict[str, str | int] = {}
    for each in said:
        name, equals, text = each.partition("=")
        if not equals or name not in PROPERTIES:
            raise QuestionError(f"{each} is not a property: give NAME=VALUE, with one of {', '.join(PROPERTIES)}")
        if name in NUMBERS and not (text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX):
            raise QuestionError(f"the property {name} is a number from 0 to 255")
        properties[name] = int(text) if name in NUMBERS else text
    return properties


def encode_block(headers: Mapping[str, str | bool | int | float], properties: Mapping[str, str | int]) -> bytes:
    """Return the property block that a client would send.

    Raises:
        QuestionError: It cannot be sent.
    """
    made = Basic.Properties(headers=dict(headers) or None)
    for name, value in properties.items():
        setattr(made, "message_type" if name == "type" else name, value)
    try:
        return made.marshal()
    except (ValueError, TypeError, OverflowError, error) as fault:
        raise QuestionError(f"the message cannot be sent so: {fault}") from fault


async def _explain_queues(view: AdminView, vhost: VirtualHost, trace: Trace, topic: str) -> list[ExplainedQueue]:
    found = (
        {queue.name: queue for queue in await explain_space(view.broker, vhost, topic)} if trace.is_topic_space else {}
    )
    found = {name: queue for name, queue in found.items() if queue.called != BY_EACH}  # its bindings were looked at
    ways = {name: ways for name, ways in trace.queues.items() if vhost.find(name) is not None}
    for queue in await explain_bindings(view.broker, vhost, ways):
        found.setdefault(queue.name, queue)
        if len(queue.bindings) > len(found[queue.name].bindings):  # the topic space knows of no chains of exchanges
            found[queue.name].bindings = queue.bindings
    return [found[name] for name in sorted(found)]


def _is_topic_space(vhost: VirtualHost, exchange: str, topic: str) -> bool:
    return bool(topic) and exchange == AMQ_TOPIC and vhost.exchanges.topic_space is not None


def _judge(
    view: AdminView, publish: Publish, vhost: VirtualHost, exchange: Exchange, key: str
) -> tuple[bool | None, str]:
    """Return whether a user may publish this, and what decides it."""
    user, name = publish.user, exchange.name
    if user is None:
        return None, ""
    is_nameless = is_as_nameless(view.authenticator, publish.door, user)
    may = view.authenticator.find_rights(publish.door, "" if is_nameless else user)
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
    return _judge_key(may, user, vhost, exchange, key)


def _judge_key(may: Permissions, user: str, vhost: VirtualHost, exchange: Exchange, key: str) -> tuple[bool, str]:
    """Return whether a user that may write to an exchange may do so with this key, and what decides it."""
    name, place = exchange.name, vhost.name.encode()
    topic = topic_from_routing_key(key.encode()).decode()
    if _is_topic_space(vhost, name, topic):
        by = may.explain("publish", topic.encode()).by
        is_allowed = may.may_publish(topic.encode())
        return is_allowed, f"user '{user}' may {'' if is_allowed else 'not '}publish to topic '{topic}' by {by}"
    if exchange.rule == KEYED and not may.may_write_key(place, name.encode(), key.encode()):
        reason = f"write access to topic '{key}' in exchange '{name}' in vhost '{vhost.name}' refused for user '{user}'"
        return False, f"{reason} by the user's topic permissions"
    by = may.explain("write", exchange_right(name).encode(), place).by
    return True, f"user '{user}' may publish this by {by}"


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
    view: AdminView, trace: Trace, place: tuple[str, str], said: Mapping[str, object], block: bytes
) -> dict[str, dict[str, str]]:
    """Return what each door tells of the message: at AMQP what was `said`, elsewhere what it becomes."""
    exchange, key = place
    topic = topic_from_routing_key(key.encode()).decode()
    properties = _record_properties(block)
    shown = {AMQP_DOOR: {"exchange": exchange, "routing_key": key, **_named("", said)}}
    is_direct = trace.is_topic_space and exchange == AMQ_TOPIC
    if trace.is_topic_space:
        own = {name: text for name, text in properties.items() if _is_users(name)}
        fields = {OF_MQTT[name]: _in_mqtt(name, text) for name, text in properties.items() if name in OF_MQTT}
        shown["mqtt"] = {"topic": topic, **fields, **_named("user property", own)}
    source = {} if is_direct else {EXCHANGE.decode(): exchange, ROUTING_KEY.decode(): key}
    shown["rocketmq"] = {
        "topic": view.broker.parent_topic.decode(),
        **_named("property", {TOPIC.decode(): topic, **source, **properties}),
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


def _in_mqtt(name: str, text: str) -> str:
    return str(int(text) // 1_000) if name == TTL_MS.decode() else text


def _named(what: str, values: Mapping[str, object]) -> dict[str, str]:
    return {f"{what} {name}".strip(): str(value) for name, value in values.items()}
