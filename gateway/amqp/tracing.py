"""How a message goes through the exchanges, binding by binding, and why it does not come to a queue: for operators."""

from __future__ import annotations

from itertools import islice

from core.lmq.topic_space import topic_from_routing_key
from gateway.amqp.binding_terms import Terms
from gateway.amqp.exchanges import CHOOSING, DEFAULT, DIRECT, HEADERS, TOPIC, Exchange, ExchangeTable
from gateway.amqp.header_match import HeaderMatch
from gateway.amqp.routing import alternate_of
from gateway.amqp.traits import Traits

BINDINGS_MAX = 100  # of a queue, told one by one; chosen: what a page can show


class Trace:
    """A walk through the exchanges.

    `queues` are those reached, each with the bindings that lead there, as texts. `passed` are the exchanges on the
    way, in order, each with how the message came there. `is_topic_space`: it also goes to all that the one topic
    space leads to.
    """

    __slots__ = ("is_topic_space", "passed", "queues")

    def __init__(self, start: Exchange) -> None:
        self.queues: dict[str, list[str]] = {}
        self.passed: dict[Exchange, str] = {start: ""}
        self.is_topic_space = False


def trace_way(table: ExchangeTable, start: Exchange, key: str, traits: Traits | None = None) -> Trace:
    """Return where a message goes that is published to `start`; one without headers, if no traits are given."""
    trace = Trace(start)
    traits = Traits(key) if traits is None else traits
    is_topic = bool(topic_from_routing_key(key.encode()))
    todo: list[tuple[Exchange, str]] = [(start, "")]
    for exchange, before in todo:
        if exchange.name == DEFAULT:
            trace.queues.setdefault(key, [])
            continue
        trace.is_topic_space = trace.is_topic_space or (is_topic and exchange is table.topic_space)
        bound = exchange.reaching(key, traits)
        further = bound or [(alternate, "(alternate)") for alternate in alternate_of(table, exchange)]
        for destination, bound_key in further:
            waits_ms = traits.delay_ms() if exchange.is_delaying and exchange is not start else 0
            waiting = f" (waits {waits_ms} ms)" if waits_ms else ""
            step = f"{before}{exchange.name}{waiting} {bound_key}".strip()
            if isinstance(destination, str):
                trace.queues.setdefault(destination, []).append(step)
            elif destination not in trace.passed:
                trace.passed[destination] = step
                todo.append((destination, f"{step} > "))
    return trace


def say_why_not(table: ExchangeTable, trace: Trace, queue: str, key: str, traits: Traits) -> list[str]:
    """Return for each binding of a queue that is not reached why it does not lead there."""
    start = next(iter(trace.passed))
    if start.name == DEFAULT:
        return [f"the default exchange leads to the queue that is named like the routing key, which is '{key}'"]
    bindings = list(islice(table.bindings_to(queue), BINDINGS_MAX + 1))
    if not bindings:
        return ["the queue is bound to no exchange"]
    said = []
    for exchange, (_, bound_key, terms) in bindings[:BINDINGS_MAX]:
        if exchange not in trace.passed:
            said.append(f"exchange '{exchange.name}' is bound to it, but is not reached from exchange '{start.name}'")
        else:
            said.append(f"exchange '{exchange.name}': {_why(exchange, bound_key, terms, key, traits)}")
    if len(bindings) > BINDINGS_MAX:
        said.append(f"it has more than these {BINDINGS_MAX} bindings")
    return said


def _why(exchange: Exchange, bound_key: str, terms: Terms, key: str, traits: Traits) -> str:
    if exchange.rule == HEADERS:
        return _why_headers(terms if isinstance(terms, HeaderMatch) else None, traits)
    if exchange.rule == DIRECT:
        return f"the binding key is '{bound_key}', the routing key '{key}'"
    if exchange.rule == TOPIC:
        return f"the binding key '{bound_key}' does not match the routing key '{key}'"
    if exchange.rule in CHOOSING:
        return "the message goes to one queue of several, this time to another"
    if exchange.downstream is not None:
        return "the message was at that downstream already, or passed too many servers"
    return "the message does not pass it"


def _why_headers(match: HeaderMatch | None, traits: Traits) -> str:
    pairs = () if match is None else match.pairs
    if match is None or not pairs:
        return "the binding asks for any of no headers"
    missing = [name for name, _, _ in pairs if name not in traits.headers]
    if match.is_any:
        return f"none of its headers is as the binding asks: {_names([name for name, _, _ in pairs])}"
    if missing:
        return f"the message lacks what the binding asks for: {_names(missing)}"
    return f"a header has another value, or type, than the binding asks for: {_names([name for name, _, _ in pairs])}"


def _names(names: list[str]) -> str:
    return ", ".join(dict.fromkeys(names))
