"""Which queues the dead letters of a queue may come to."""

from __future__ import annotations

from gateway.amqp.exchanges import Exchange
from gateway.amqp.queues import VirtualHost
from gateway.amqp.shared_queue import SharedQueue


def find_letter_queues(vhost: VirtualHost, queue: SharedQueue, reached: dict[tuple[str, str], list[str]]) -> list[str]:
    """Return the queues that letters of a queue that has such may come to; `reached` remembers those of exchanges."""
    name, key = queue.terms.dead_letter_exchange or "", queue.terms.dead_letter_key
    if not name:
        return [key or queue.name]
    known = reached.get((vhost.name, name))
    if known is None:
        exchange = vhost.exchanges.find(name)
        known = reached[vhost.name, name] = [] if exchange is None else _follow(exchange)
    return known


def _follow(exchange: Exchange) -> list[str]:
    """Return the queues that an exchange leads to, by whatever key, also by way of others."""
    queues: dict[str, None] = {}
    passed = {exchange}
    todo = [exchange]
    for one in todo:
        for destination, _, _ in one.bindings:
            if isinstance(destination, str):
                queues[destination] = None
            elif destination not in passed:
                passed.add(destination)
                todo.append(destination)
    return list(queues)
