"""Which queue of which broker a message goes to."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence

from lmq.errors import NoPermissionError
from lmq.out_message import OutMessage
from lmq.queues import MessageQueue
from lmq.remoting.response_codes import ResponseCode
from lmq.routes import Route
from lmq.subscription import hash_of_java

QueueSelector = Callable[[Sequence[MessageQueue], OutMessage], MessageQueue]
"""Chooses one of a topic's queues, which are sorted, for a message."""

FAULT_S = 10.0  # what a send that failed counts as
# From how long a send took: how long its broker is left alone, where another can be had. (Apache's table.)
REST_S = ((0.55, 2.0), (1.8, 5.0), (3.0, 6.0), (5.0, 10.0), (15.0, 30.0))


def select_by_hash(queues: Sequence[MessageQueue], message: OutMessage) -> MessageQueue:
    """Return the queue of the message's sharding key, the one that Java's SelectMessageQueueByHash gives."""
    return queues[abs(hash_of_java(message.sharding_key)) % len(queues)]


class QueueChoice:
    """Goes round all queues, and leaves out brokers that failed or were slow lately while there are others.

    Args:
        selector: Chooses in its place, for messages that say neither a queue nor a sharding key.
    """

    def __init__(self, selector: QueueSelector | None = None) -> None:
        self._selector = selector
        self._turn = itertools.count()
        self._rests_until_s: dict[str, float] = {}  # by broker, of time.monotonic

    def choose(self, routes: Sequence[Route], message: OutMessage, failed: str = "") -> tuple[Route, int]:
        """Return the broker and the queue of a message.

        Args:
            routes: The topic's brokers.
            message: The message. With a sharding key, or a selector, the state of brokers changes nothing.
            failed: The broker that it was sent to in vain, which is taken again only where there is no other.

        Raises:
            NoPermissionError: No broker's queues can be written.
        """
        routes = [route for route in routes if route.write_queues]
        if not routes:
            raise NoPermissionError(ResponseCode.NO_PERMISSION, f"no queue of {message.topic} can be written")
        selector = select_by_hash if message.sharding_key and message.queue_id is None else self._selector
        if message.queue_id is None and selector is not None:
            return _select(selector, routes, message)
        turn = next(self._turn)
        healthy = self._healthy(routes, failed)
        if message.queue_id is not None:
            return healthy[turn % len(healthy)], message.queue_id
        queues = [(route, number) for route in healthy for number in range(route.write_queues)]
        return queues[turn % len(queues)]

    def _healthy(self, routes: Sequence[Route], failed: str) -> Sequence[Route]:
        if len(routes) == 1:
            return routes
        now_s = time.monotonic()
        others = [route for route in routes if route.broker_name != failed]
        rested = [route for route in others if self._rests_until_s.get(route.broker_name, 0.0) <= now_s]
        return rested or others or routes

    def note(self, broker_name: str, took_s: float) -> None:
        """Note how long a broker took to answer a send, or `FAULT_S` where it did not."""
        rest_s = max((rest_s for from_s, rest_s in REST_S if took_s >= from_s), default=0.0)
        if rest_s:
            self._rests_until_s[broker_name] = time.monotonic() + rest_s
        else:
            self._rests_until_s.pop(broker_name, None)


def _select(selector: QueueSelector, routes: Sequence[Route], message: OutMessage) -> tuple[Route, int]:
    queues = sorted(
        MessageQueue(message.topic, route.broker_name, number)
        for route in routes
        for number in range(route.write_queues)
    )
    chosen = selector(queues, message)
    if chosen not in queues:
        raise ValueError(f"the selector returned {chosen!r}, which is not one of the given queues")
    return next(route for route in routes if route.broker_name == chosen.broker_name), chosen.queue_id
