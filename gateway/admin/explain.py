"""Where a publish would go now, and why: to a topic of the one topic space, or to an exchange of AMQP."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from core.broker import Broker
from core.lmq.explained import ExplainedQueue as ReachedQueue
from core.lmq.queue_name import is_amqp, is_crossing
from core.lmq.topic_space import binding_key_from_filter, routing_key_from_topic, topic_from_routing_key
from core.lmq.topic_trie import is_wildcard
from core.reserved import SYS_ROOT, is_bridge_state
from gateway.admin.schemas import ExchangeExplanation, ExplainedQueue, Explanation
from gateway.amqp.exchanges import AMQ_TOPIC, Exchange
from gateway.amqp.queues import VirtualHost
from gateway.amqp.tracing import trace_way
from gateway.auth.authenticator import Authenticator
from gateway.auth.credentials import Credentials

SUBSCRIBED = ("$share/", "$queue/", "$exclusive/", "$replay/")
QUEUES_AT_ONCE = 128  # about a millisecond
BY_EACH = "an exchange that looks at more than the topic: asked for each message"


class QuestionError(Exception):
    """A question that has no answer; the text is for the asker."""


class MissingError(QuestionError):
    """A question about a virtual host, an exchange or a queue that is not there."""


def is_as_nameless(authenticator: Authenticator, door: str, user: str) -> bool:
    """Return whether a client that gives this name, which no user has, comes in as one without a name would."""
    here = [Credentials(door, user, None, "", ways=ways) for ways in authenticator.open_ways.ways_of(door)]
    is_known = any(user == one.name for one in authenticator.users())
    return bool(user) and not is_known and any(map(authenticator.lets_be_anonymous, here))


async def explain_topic(broker: Broker, vhost: VirtualHost | None, topic: str) -> Explanation:
    """Return where a publish to `topic` would go; `vhost` is the one that has the topics of MQTT, if it is there.

    Raises:
        QuestionError: It is a filter, and no topic.
    """
    check_topic(topic)
    queues = await explain_space(broker, vhost, topic)
    return Explanation(topic=topic, parent_topic=_text(broker.parent_topic), queues=queues)


def check_topic(topic: str) -> None:
    """Return where clients can publish to `topic`.

    Raises:
        QuestionError: They cannot.
    """
    if is_wildcard(topic.encode()):
        raise QuestionError(f"{topic} is a filter, with + or #: a message has a topic without them, such as a/b/c")
    if topic.encode().startswith(SYS_ROOT) and not is_bridge_state(topic.encode()):
        raise QuestionError(f"{topic} is the gateway's own: clients cannot publish to it")
    if topic.startswith(SUBSCRIBED):
        raise QuestionError(f"{topic} is what a client subscribes to: a message has the topic behind that")


async def explain_exchange(broker: Broker, vhost: VirtualHost, name: str, key: str) -> ExchangeExplanation:
    """Return where a publish to an exchange would go.

    Raises:
        MissingError: There is no such exchange.
        QuestionError: Clients may not publish to it.
    """
    exchange = get_exchange(vhost, name)
    topic = _text(topic_from_routing_key(key.encode()))
    is_topic_space = bool(topic) and exchange is vhost.exchanges.topic_space
    if is_topic_space:
        queues = await explain_space(broker, vhost, topic)
    else:
        ways = trace_way(vhost.exchanges, exchange, key).queues
        queues = await explain_bindings(broker, vhost, {queue: ways[queue] for queue in ways if vhost.find(queue)})
    return ExchangeExplanation(
        vhost=vhost.name,
        exchange=name,
        kind=exchange.kind,
        routing_key=key,
        topic=topic,
        parent_topic=_text(broker.parent_topic),
        is_topic_space=is_topic_space,
        queues=queues,
    )


def get_exchange(vhost: VirtualHost, name: str) -> Exchange:
    """Return an exchange that clients publish to.

    Raises:
        MissingError: There is none.
        QuestionError: They do not publish to this one.
    """
    exchange = vhost.exchanges.find(name)
    if exchange is None:
        raise MissingError(f"no exchange '{name}' in vhost '{vhost.name}'")
    if exchange.is_internal:
        raise QuestionError(f"exchange '{name}' in vhost '{vhost.name}' is internal: clients cannot publish to it")
    return exchange


async def explain_bindings(broker: Broker, vhost: VirtualHost, ways: Mapping[str, list[str]]) -> list[ExplainedQueue]:
    """Return AMQP queues with the bindings that lead there, sorted by name."""
    explained: list[ExplainedQueue] = []
    for queue, bindings in sorted(ways.items()):
        await _pause(len(explained))
        reached = broker.explain_queue(vhost.light_name(queue), {})
        explained.append(
            ExplainedQueue(
                name=_text(reached.name),
                called=_called(vhost, queue),
                filters=[],
                bindings=sorted(bindings),
                subscriptions=max(len(bindings), 1),
                readers=reached.readers,
                max_offset=reached.max_offset,
            )
        )
    return explained


async def explain_space(broker: Broker, vhost: VirtualHost | None, topic: str) -> list[ExplainedQueue]:
    """Return the light queues that a topic leads to, sorted by name."""
    explained: list[ExplainedQueue] = []
    called = {} if vhost is None else _find_called(vhost, routing_key_from_topic(topic.encode()).decode())
    for queue in broker.explain(topic.encode()):
        await _pause(len(explained))
        name = BY_EACH if is_crossing(queue.name) else called.get(queue.name, "")
        explained.append(_explain_queue(queue, name))
    return explained


def _find_called(vhost: VirtualHost, key: str) -> dict[bytes, str]:
    """Return what the queues are called that the topic space leads to with a routing key, by their light queues."""
    table = vhost.exchanges
    if table.topic_space is None:
        return {}
    return {vhost.light_name(queue): _called(vhost, queue) for queue in trace_way(table, table.topic_space, key).queues}


def _called(vhost: VirtualHost, queue: str) -> str:
    return f"queue '{queue}' in vhost '{vhost.name}'"


async def _pause(done_count: int) -> None:
    """Let others have their turn after every so many queues."""
    if done_count % QUEUES_AT_ONCE == QUEUES_AT_ONCE - 1:
        await asyncio.sleep(0)


def _explain_queue(queue: ReachedQueue, called: str) -> ExplainedQueue:
    bindings = queue.filters if is_amqp(queue.name) else ()
    return ExplainedQueue(
        name=_text(queue.name),
        called=called,
        filters=[_text(topic_filter) for topic_filter in queue.filters],
        bindings=[f"{AMQ_TOPIC} {_text(binding_key_from_filter(topic_filter))}" for topic_filter in bindings],
        subscriptions=sum(queue.filters.values()),
        readers=queue.readers,
        max_offset=queue.max_offset,
    )


def _text(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")
