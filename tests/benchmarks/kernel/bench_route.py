"""Print what matching, routing and shared consumption cost, in ns: python tests/benchmarks/kernel/bench_route.py."""

from __future__ import annotations

import random
import sys
import time
from array import array
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from core.cache_budget import CacheBudget
from core.lmq import topic_trie
from core.lmq.router import Router
from core.message import DispatchSet, RefRoom, Route, StoredBatch
from core.pop.pop_service import PopService
from tests.support.stores import MemoryJournal, MemoryQueues

EXACT_COUNT = 1_000_000
WILDCARD_COUNT = 10_000
ROUNDS = 20_000
POP_BATCH = 128


class NullJournal(MemoryJournal):
    """A journal that writes nothing."""

    def append_many(self, records, size):
        """Do nothing."""


def private_bytes():
    """Return this process's private memory."""
    with open("/proc/self/status", encoding="ascii") as status:  # noqa: PTH123 - Linux only, a benchmark
        return sum(int(line.split()[1]) * 1024 for line in status if line.startswith(("RssAnon", "RssShmem")))


def make_wildcard(number):
    """Return one filter of the shapes that fleets have."""
    return (
        b"site/+/dev/%d/#" % number,
        b"fleet/%d/+/state" % number,
        b"+/%d/cmd" % number,
        b"#/alarm/%d" % number,
    )[number % 4]


def say(name, seconds, count):
    sys.stdout.write(f"{name:<64}{seconds / count * 1e9:>12,.0f} ns\n")


def time_calls(name, call, arguments):
    start = time.perf_counter()
    for argument in arguments:
        call(argument)
    say(name, time.perf_counter() - start, len(arguments))


def bench_match():
    trie = topic_trie.TopicTrie()
    exact = [b"device/%d/up/temperature" % number for number in range(EXACT_COUNT)]
    kept = private_bytes()
    start = time.perf_counter()
    for number, topic_filter in enumerate(exact):
        trie.insert(topic_filter, number)
    say("insert an exact filter", time.perf_counter() - start, EXACT_COUNT)
    sys.stdout.write(
        f"{'memory of an exact filter (its bytes apart)':<64}{(private_bytes() - kept) / EXACT_COUNT:>12,.0f} B\n"
    )
    for number in range(WILDCARD_COUNT):
        trie.insert(make_wildcard(number), number)
    chosen = random.Random(1)
    numbers = [chosen.randrange(EXACT_COUNT) for _ in range(ROUNDS)]
    topics_by_shape = {
        "one exact filter": [b"device/%d/up/temperature" % n for n in numbers],
        "no filter": [b"device/%d/down/temperature" % n for n in numbers],
        "one wildcard, 8 levels": [
            b"site/7/dev/%d/up/alarm/%d" % (n % WILDCARD_COUNT, n % WILDCARD_COUNT) for n in range(ROUNDS)
        ],
        "two wildcards, 8 levels": [
            b"site/7/dev/%d/up/x/alarm/%d" % (n % WILDCARD_COUNT // 4 * 4, n % WILDCARD_COUNT // 4 * 4 + 3)
            for n in range(ROUNDS)
        ],
        "no filter, 32 levels": [b"site/7/dev/x/" + b"/".join([b"%d" % n] * 28) for n in range(ROUNDS)],
    }
    for shape, topics in topics_by_shape.items():
        time_calls(f"match, 1M exact + 10k wildcards: {shape}", lambda topic: trie.match(topic, []), topics)


def bench_wildcard_memory():
    count = 100_000
    for shape in (b"site/+/dev/%07d/#", b"fleet/%07d/+/state", b"+/%07d/cmd"):
        trie = topic_trie.TopicTrie()
        before = private_bytes()
        for number in range(count):
            trie.insert(shape % number, number)
        name = f"memory of a wildcard filter {shape.decode().replace('%07d', '<id>')}"
        sys.stdout.write(f"{name:<64}{(private_bytes() - before) / count:>12,.0f} B\n")


def make_route(topic, names):
    return Route(topic, 0, 0, b"", DispatchSet(list(names), [0] * len(names), b",".join(names), RefRoom()))


def bench_route():
    router = Router(make_route, CacheBudget())
    for number in range(WILDCARD_COUNT):
        router.bind(make_wildcard(number), b"q%d" % number, hides_dollar=True)
    topics = [b"site/1/dev/%d/up" % number for number in range(500)] * 40
    time_calls("route, cached in 39 of 40 calls", router.route, topics)
    time_calls("route, cached", router.route, topics)
    router.bind(b"other/+", b"q", hides_dollar=True)
    time_calls("route, checked against one changed filter", router.route, topics[:500])


def bench_pop():
    """Take and acknowledge in batches; the store is played by a counter, so that only the state costs."""
    store = MemoryQueues()
    queue = PopService(store, NullJournal()).open(b"%LMQ%q", b"amqp")
    batch, rounds = StoredBatch(POP_BATCH), 2000
    store.grow(queue.queue_ref, POP_BATCH)
    store.read(queue.queue_ref, 0, batch, POP_BATCH, 1 << 40)
    mine, theirs = array("q", range(0, POP_BATCH, 2)), array("q", range(1, POP_BATCH, 2))
    state, spent = queue.state, 0.0
    for number in range(rounds):
        for i in range(POP_BATCH):
            batch.queue_offset[i] = number * POP_BATCH + i
        batch.next_offset = (number + 1) * POP_BATCH
        store.grow(queue.queue_ref, POP_BATCH)
        start = time.perf_counter()
        state.take_new(batch, 0)
        queue.ack_many(batch.queue_offset, POP_BATCH)
        spent += time.perf_counter() - start
    say(f"take and ack in order, {POP_BATCH} at a time", spent, rounds * POP_BATCH)
    spent = 0.0
    for number in range(rounds, 2 * rounds):
        for i in range(POP_BATCH):
            batch.queue_offset[i] = number * POP_BATCH + i
        batch.next_offset = (number + 1) * POP_BATCH
        for offsets in (mine, theirs):
            for i in range(len(offsets)):
                offsets[i] = number * POP_BATCH + 2 * i + (offsets is theirs)
        start = time.perf_counter()
        state.take_new(batch, 0)
        queue.ack_many(mine, len(mine))
        queue.ack_many(theirs, len(theirs))
        spent += time.perf_counter() - start
    say("take and ack, every other one by another consumer", spent, rounds * POP_BATCH)


def main():
    sys.stdout.write("compiled\n" if topic_trie.__file__.endswith(".so") else "not compiled\n")
    bench_match()
    bench_wildcard_memory()
    bench_route()
    bench_pop()


if __name__ == "__main__":
    main()
