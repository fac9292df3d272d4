"""The end of a virtual host, in steps: its connections are closed, then its queues, exchanges and bindings go."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gateway.amqp.exchanges import PREDECLARED
from gateway.amqp.queues import VirtualHost
from gateway.inventory import take_each


def dismantle(vhost: VirtualHost, now_ms: int, rights: Iterable[None] = ()) -> Iterator[None]:
    """Take away all that a virtual host has, which nobody can open any more; `rights`: what users may do in it, first.

    What a process that is killed meanwhile leaves is taken away by doing it again.
    """
    for connection in take_each(vhost.connections):  # a list would free all that are gone by then in one go
        connection.turn_out(now_ms, f"vhost '{vhost.name}' is down")
        yield
    yield from rights
    for queue in vhost:
        if not queue.is_deleted:
            _, steps = vhost.remove_in_steps(queue)
            yield from steps
            yield
    for exchange in vhost.exchanges:
        for binding in exchange.bindings:
            vhost.unbind(exchange, binding)
            yield
        if exchange.name not in PREDECLARED and vhost.exchanges.find(exchange.name) is exchange:
            vhost.remove_exchange(exchange)
            yield
