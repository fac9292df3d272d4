from __future__ import annotations

import sys

from hypothesis import given, strategies as st

from gateway.rocketmq.transactions.pending import CHUNK_BITS, Pending

CHUNK = 1 << CHUNK_BITS


@given(
    st.integers(0, 2 * CHUNK),
    st.lists(st.one_of(st.integers(0, 3 * CHUNK), st.tuples(st.integers(0, 3 * CHUNK), st.integers(0, 6_000)))),
)
def test_it_knows_what_a_set_of_numbers_knows(start, steps):
    pending = Pending(start)
    end = 4 * CHUNK
    model = set(range(start, end))
    for step in steps:
        first, count = step if isinstance(step, tuple) else (step, 1)
        for offset in range(first, min(first + count, end)):
            pending.settle(offset)
            model.discard(offset)
        assert pending.count(end) == len(model)
        assert pending.is_settled(first) == (first not in model)
        assert pending.next_pending(first, end) == min((at for at in model if at >= first), default=end)
        assert pending.advance(end) == pending.start == min(model, default=end)
        assert pending.count(end) == len(model)


def test_many_that_wait_and_many_that_are_done_with_cost_next_to_nothing():
    pending = Pending()
    for offset in range(1, 100_000):
        pending.settle(offset)
    assert pending.next_pending(1, 200_000) == 100_000
    assert pending.count(200_000) == 100_001
    assert len(pending._chunks) <= 100_000 // CHUNK + 1
    assert sum(map(sys.getsizeof, {id(bits): bits for bits in pending._chunks.values()}.values())) < 4_000
    pending.settle(0)
    assert pending.advance(200_000) == 100_000
    assert len(pending._chunks) == 1
