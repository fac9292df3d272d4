from __future__ import annotations

import tracemalloc

from gateway.auth.digest_memory import BYTES_EACH, DigestMemory


def test_what_was_asked_for_longest_ago_goes_first():
    memory = DigestMemory(3 * BYTES_EACH)
    for digest in (b"a", b"b", b"c"):
        memory.add(digest)
    assert memory.knows(b"a")
    memory.add(b"d")
    assert [memory.knows(digest) for digest in (b"a", b"b", b"c", b"d")] == [True, False, True, True]
    assert (memory.hits, memory.misses) == (4, 1)


def test_digest_that_comes_again_is_kept_once():
    memory = DigestMemory(2 * BYTES_EACH)
    for digest in (b"a", b"b", b"a", b"c"):
        memory.add(digest)
    assert len(memory) == 2
    assert [memory.knows(digest) for digest in (b"a", b"b", b"c")] == [True, False, True]


def test_memory_takes_no_more_than_it_may():
    bytes_max = 256 * 1024
    tracemalloc.start()
    memory = DigestMemory(bytes_max)
    for number in range(20_000):
        memory.add(number.to_bytes(32))
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(memory) > 1_000
    assert taken < bytes_max * 1.3
