"""What leads to an AMQP queue, and what it holds."""

from __future__ import annotations

from core.lmq.topic_space import filter_from_binding_key
from gateway.admin.explain import MissingError
from gateway.admin.management.argument_values import told_arguments
from gateway.admin.schemas import QueueExplanation
from gateway.admin.view import AdminView
from gateway.amqp.binding_terms import Terms
from gateway.amqp.exchanges import Destination, Exchange, ExchangeTable
from gateway.amqp.header_match import HeaderMatch
from gateway.amqp.inventory import describe_queue
from gateway.amqp.queue_pops import QueuePops

WAYS_MAX = 1_000  # that are told: a queue may have a hundred thousand bindings


def explain_queue(view: AdminView, vhost_name: str, name: str) -> QueueExplanation:
    """Return what there is to say of a queue.

    Raises:
        MissingError: There is none.
    """
    vhost = view.vhosts.find(vhost_name)
    if vhost is None:
        raise MissingError(f"no vhost '{vhost_name}'")
    queue = vhost.find(name)
    if queue is None:
        raise MissingError(f"no queue '{name}' in vhost '{vhost_name}'")
    entry = describe_queue(view.broker, vhost, queue)
    arguments = told_arguments(queue.arguments)
    ways, keys = _find_ways(vhost.exchanges, name)
    dead, ruling = queue.terms.dead_letter_exchange, queue.ruling
    return QueueExplanation(
        name=name,
        vhost=vhost_name,
        light_queue=entry.light_queue,
        levels=[one.decode() for one in QueuePops(view.broker).light_names(queue.light_name, queue.terms)[1:]],
        arguments=arguments,
        bindings=ways,
        filters=[filter_from_binding_key(key.encode()).decode() for key in keys],
        policy=None if ruling.policy is None else ruling.policy.name,
        operator_policy=None if ruling.operator is None else ruling.operator.name,
        ruled=dict(ruling.definition),
        dead_letters=None if dead is None else f"{dead or '(default)'} {queue.terms.dead_letter_key or ''}".strip(),
        readers=queue.reader_count(),
        ready=entry.ready or 0,
        unacked=entry.unacked or 0,
        first_offset=max(entry.min_offset, queue.first_offset),
        next_offset=entry.max_offset,
    )


def _find_ways(table: ExchangeTable, queue: str) -> tuple[list[str], list[str]]:
    """Return the ways to a queue, each from an exchange on, and the keys of those from the topic space."""
    ways = [f"(default) {queue}"]
    keys: list[str] = []
    passed: dict[Exchange, None] = {}
    todo: list[tuple[Destination, str]] = [(queue, "")]
    for destination, after in todo:
        for exchange, (_, key, terms) in table.bindings_to(destination):
            if len(ways) == WAYS_MAX:
                return ways, keys
            way = f"{exchange.name} {key}".strip() + _told(terms) + after
            ways.append(way)
            if exchange is table.topic_space:
                keys.append(key)
            if exchange not in passed:
                passed[exchange] = None
                todo.append((exchange, f" > {way}"))
    return ways, list(dict.fromkeys(keys))


def _told(terms: Terms) -> str:
    if isinstance(terms, HeaderMatch):
        return f" ({terms.kind}: {', '.join(sorted({pair[0] for pair in terms.pairs}))})"
    return "" if terms is None else f" {terms}"
