"""What the index costs: ns an entry and a lookup, bytes a queue.

Run as `python -m tests.benchmarks.kernel.bench_index`.

A call from Python costs a conversion of its arguments that a compiled caller does not pay; it is measured by a call
that does nothing and taken off. Each figure is the best of several rounds, into memory that was touched before.
"""

from __future__ import annotations

import random
import sys
import time
from array import array
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from core.store import head_index
from core.store.head_index import HeadIndex
from core.store.queue_names import QueueNames
from core.store.sealed_index import SealedIndex, write_sealed_index

ROUNDS = 5


def private_bytes() -> int:
    """Return the private memory of this process."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    fields = {name: value for name, _, value in (line.partition(":") for line in lines)}
    return sum(1_024 * int(fields[name].split()[0]) for name in ("RssAnon", "RssShmem"))


def best_of(work: Callable[[], object], count: int, rounds: int = ROUNDS) -> float:
    """Return the least ns that one of `count` things in `work` took."""
    least = float("inf")
    for _ in range(rounds):
        before = time.perf_counter_ns()
        work()
        least = min(least, time.perf_counter_ns() - before)
    return least / count


def measure_adds(queue_count: int, set_size: int, set_count: int) -> float:
    """Return ns for each queue of a set."""
    head = HeadIndex(queue_count)
    head.add_set(array("i", range(queue_count)), queue_count, 1)
    sets = [array("i", random.sample(range(queue_count), set_size)) for _ in range(set_count)]

    def add() -> None:
        for refs in sets:
            head.add_set(refs, set_size, 7)

    def add_nothing() -> None:
        for refs in sets:
            head.add_set(refs, 0, 7)

    add()
    return (best_of(add, len(sets)) - best_of(add_nothing, len(sets))) / set_size


def measure_lookups(queue_count: int, depth: int) -> tuple[float, float]:
    """Return ns for a random lookup of 32 entries, and for each entry of a scan by 1,024."""
    head = HeadIndex(queue_count)
    everyone = array("i", range(queue_count))
    for position in range(depth):
        head.add_set(everyone, queue_count, position)
    out = array("i", bytes(4 * 1_024))
    wanted = [(random.randrange(queue_count), random.randrange(depth)) for _ in range(20_000)]

    def look_up() -> None:
        for ref, offset in wanted:
            head.lookup(ref, offset, 32, out)

    def scan() -> None:
        offset = 0
        while count := head.lookup(0, offset, 1_024, out):
            offset += count

    return best_of(look_up, len(wanted)), best_of(scan, depth)


def measure_million(folder: Path, queue_count: int) -> None:
    """Print what that many queues with two entries each take."""
    start = private_bytes()
    names = QueueNames.open(folder / "queues")
    head = HeadIndex()
    before = time.perf_counter()
    for number in range(queue_count):
        names.intern(b"%%LMQ%%mqtt%%dev%08d" % number)
    interned = time.perf_counter()
    named = private_bytes()
    head.ensure(names.count)
    refs = array("i", range(queue_count))
    start_entries = private_bytes()
    for position in (1, 2):
        head.add_set(refs, queue_count, position)
    indexed = private_bytes() - start_entries
    print(f"{queue_count:,} queues x 2: names {(named - start) / queue_count:.0f} B,", end=" ")
    print(f"rows and entries {indexed / queue_count:.0f} B a queue", end="; ")
    print(f"named in {1e9 * (interned - before) / queue_count:.0f} ns each")
    names.write_out()
    before = time.perf_counter()
    frozen = head.detach()
    detached = time.perf_counter()
    names.sync()
    synced = time.perf_counter()
    write_sealed_index(folder / "sealed", frozen, 0, queue_count, names.fingerprint(queue_count))
    written = time.perf_counter()
    names.close()
    QueueNames.open(folder / "queues").close()
    opened = time.perf_counter()
    sealed = SealedIndex.open(folder / "sealed")
    mapped = time.perf_counter()
    print(f"  detach {1e3 * (detached - before):.1f} ms, seal {1e3 * (written - synced):.0f} ms,", end=" ")
    print(f"open names {1e3 * (opened - written):.0f} ms, open sealed {1e3 * (mapped - opened):.0f} ms")
    out = array("i", bytes(4 * 32))
    wanted = [random.randrange(queue_count) for _ in range(20_000)]

    def look_up() -> None:
        for ref in wanted:
            sealed.lookup(ref, 0, 32, out)

    print(f"  sealed lookup of 2 entries {best_of(look_up, len(wanted)):.0f} ns (from Python)")


def main() -> None:
    """Print all figures."""
    is_compiled = not (head_index.__file__ or "").endswith(".py")
    scale = 1 if is_compiled else 20
    print("compiled" if is_compiled else "uncompiled", f"Python {sys.version.split()[0]}")
    for queue_count in (1, 3, 1_000, 1_000_000 // scale):
        for set_size in (1, 3, 1_000):
            if set_size <= queue_count:  # so many sets that each round comes to most queues
                cost = measure_adds(queue_count, set_size, max(queue_count // 2 // set_size, 100))
                print(f"add to a set of {set_size:,} of {queue_count:,} queues: {cost:.1f} ns a queue")
    lookup, scan = measure_lookups(100, 100_000 // scale)
    print(f"lookup of 32 entries {lookup:.0f} ns (from Python), scan {scan:.2f} ns an entry")
    with TemporaryDirectory() as folder:
        measure_million(Path(folder), 1_000_000 // scale)


if __name__ == "__main__":
    main()
