"""Subscriptions in the shapes that fleets have: what a match costs, and what one of them holds.

Alone in the trie and in the router (its cache of routes apart: each topic is matched), and whole, at the MQTT door.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence

import uvloop

from core.cache_budget import CacheBudget
from core.lmq.router import Router
from core.lmq.topic_trie import TopicTrie
from core.message import DispatchSet, RefRoom, Route
from tests.benchmarks.scale.gateway import Gateway, gateway
from tests.benchmarks.scale.points import Samples
from tests.benchmarks.scale.process import in_own_process, own_private_bytes
from tests.benchmarks.scale.progress import Run
from tests.benchmarks.scenarios.load import Count, in_groups
from tests.benchmarks.scenarios.mqtt_load import Peer, connect, publish_packet, subscribe_packet

MATCHES = 50_000
WEIGHED_FROM = 1_000  # fewer weigh less than what the process takes anyway
DOOR_MAX = 100_000  # subscriptions at a door
FILTERS_EACH = 500  # of one connection
ASKED = 20_000  # topics published at the door, each its own
ONE_DIGIT_MAX = 125
EXACT, WILDCARD = "%07d/cmd", "site/+/dev/%07d/#"
EXACT_TOPIC, WILDCARD_TOPIC = "%07d/cmd", "site/7/dev/%07d/up/temperature"


def measure(run: Run, size: int) -> Samples:
    """Match against `size` filters of each shape, then bind them, then subscribe to them."""
    found: dict[str, list[float]] = {}
    for name, topic_filter, topic in (("exact", EXACT, EXACT_TOPIC), ("wildcard", WILDCARD, WILDCARD_TOPIC)):
        run.say(f"matching against {size:,} filters {topic_filter}")
        found |= in_own_process(match, name, topic_filter, topic, size, run.rounds)
        run.say(f"binding {size:,} filters {topic_filter}")
        found |= in_own_process(bind, name, topic_filter, size)
    found |= in_own_process(route, size, run.rounds)
    if size <= DOOR_MAX:
        with gateway() as ours:
            ours.start()
            found |= uvloop.run(_subscribe(run, ours, size))
    return found


def match(name: str, topic_filter: str, topic: str, size: int, rounds: int) -> Samples:
    """Return ns a match, and the bytes of a filter, its own bytes not counted."""
    filters = [(topic_filter % number).encode() for number in range(size)]
    trie = TopicTrie()
    before = own_private_bytes()
    for number, each in enumerate(filters):
        trie.insert(each, number, hides_dollar=True)
    weight = (own_private_bytes() - before) / size
    found: dict[str, list[float]] = {f"{name}_match_ns": _time_calls(lambda t: trie.match(t, []), topic, size, rounds)}
    return found | ({f"{name}_bytes": [weight]} if size >= WEIGHED_FROM else {})


def bind(name: str, topic_filter: str, size: int) -> Samples:
    """Return the bytes of a filter that is bound to its light queue: filter and name with it."""
    router = Router(_make_route, CacheBudget(1))
    before = own_private_bytes()
    for number in range(size):
        text = (topic_filter % number).encode()
        router.bind(text, b"%LMQ%mqtt%" + text.replace(b"/", b"|2f"), hides_dollar=True)
    return {f"{name}_bound_bytes": [(own_private_bytes() - before) / size]} if size >= WEIGHED_FROM else {}


def route(size: int, rounds: int) -> Samples:
    """Return ns to find the light queues of a topic where half of the filters are exact and half are wildcards."""
    router = Router(_make_route, CacheBudget(1))
    for number in range(0, size, 2):
        router.bind((WILDCARD % number).encode(), b"w%07d" % number, hides_dollar=True)
        if number + 1 < size:
            router.bind((EXACT % (number + 1)).encode(), b"e%07d" % number, hides_dollar=True)
    return {"route_ns": _time_calls(router.matches, WILDCARD_TOPIC, size, rounds)}


def _make_route(topic: bytes, names: Sequence[bytes]) -> Route:
    return Route(topic, 0, 0, b"", DispatchSet(list(names), [0] * len(names), b"", RefRoom()))


def _time_calls(call: Callable[[bytes], object], topic: str, size: int, rounds: int) -> list[float]:
    chosen, found = random.Random(1), []
    for _ in range(rounds + 1):
        topics = [(topic % chosen.randrange(size)).encode() for _ in range(MATCHES)]
        began = time.perf_counter_ns()
        for each in topics:
            call(each)
        found.append((time.perf_counter_ns() - began) / MATCHES)
    return found[1:]


# At the door


class Holder(Peer):
    """A connection that subscribes; `answered` is met at each SUBACK."""

    def subscribe(self, filters: list[str]) -> asyncio.Future[None]:
        """Send one SUBSCRIBE."""
        self.left = 4 + len(filters) + (len(filters) > ONE_DIGIT_MAX)  # the size of a SUBACK has a digit or two
        self.answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.transport.write(subscribe_packet(filters, 1))
        return self.answered

    def take(self, data: bytes) -> None:
        self.left -= len(data)
        if self.left <= 0 and not self.answered.done():
            self.answered.set_result(None)


async def _subscribe(run: Run, ours: Gateway, size: int) -> Samples:
    port, count = ours.server.ports["mqtt"], Count()
    holders = [Holder(f"holder{number:04}", count) for number in range(-(-size // FILTERS_EACH))]
    await in_groups([lambda peer=peer: connect("127.0.0.1", port, peer) for peer in holders])  # type: ignore[misc]
    before = ours.server.private_bytes()
    for number, holder in enumerate(holders):
        run.say(f"subscribing, {number * FILTERS_EACH:,} of {size:,}") if number % 40 == 0 else None
        numbers = range(number * FILTERS_EACH, min((number + 1) * FILTERS_EACH, size))
        await asyncio.wait_for(holder.subscribe([(EXACT if n % 2 else WILDCARD) % n for n in numbers]), 60)
    found: dict[str, list[float]] = {"publish_us": []}
    if size >= WEIGHED_FROM:
        found["door_bytes"] = [(ours.server.private_bytes() - before) / size]
    for number in range(run.rounds):
        run.say(f"publishing to topics that are new, beside {size:,} subscriptions")
        found["publish_us"].append(await _publish(ours, number))
    for holder in holders:
        holder.transport.abort()
    return found


async def _publish(ours: Gateway, number: int) -> float:
    """Return the server's CPU microseconds for a QoS 1 message to a topic that it never saw and nobody wants."""
    count = Count()
    peer = await connect("127.0.0.1", ours.server.ports["mqtt"], Asker(f"asker{number}", count))
    topics = [f"site/{number:02}/dev/x{n:06}/up" for n in range(ASKED)]
    cpu = ours.cpu_s()
    await peer.publish(topics)
    found = 1e6 * (ours.cpu_s() - cpu) / ASKED
    peer.transport.abort()
    return found


class Asker(Peer):
    """Publishes each of some topics once, QoS 1."""

    async def publish(self, topics: list[str]) -> None:
        """Return when all are acknowledged."""
        self.done = asyncio.get_running_loop().create_future()
        self.wanted = len(topics)
        self.packets = iter([publish_packet(topic, b"x" * 256, n % 65_535 + 1) for n, topic in enumerate(topics)])
        self.send(256)
        await asyncio.wait_for(self.done, 60)

    def send(self, count: int) -> None:
        """Send the next of them."""
        self.transport.write(b"".join([packet for _, packet in zip(range(count), self.packets, strict=False)]))

    def take(self, data: bytes) -> None:
        acks, rest = divmod(len(self.tail) + len(data), 4)
        self.tail = data[len(data) - rest :]
        self.count.acked += acks
        self.send(acks)
        if self.count.acked >= self.wanted and not self.done.done():
            self.done.set_result(None)
