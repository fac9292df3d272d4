from __future__ import annotations

import time

from hypothesis import given, strategies as st

from gateway.commands.bench.figures import Tally, percentile_ms, sent_ns, stamp


def test_a_tally_tells_rates_and_latencies():
    tally = Tally()
    assert tally.tell(0.0) == {
        "messages": 0, "seconds": 0.0, "rate": 0, "bytes_rate": 0,
        "p50_ms": None, "p95_ms": None, "p99_ms": None, "max_ms": None,
    }  # fmt: skip
    tally.add(10, 1_000)
    for number in range(100):
        tally.note_latency(number * 1_000_000)
    told = tally.tell(tally.last_s - 2.0)
    assert (told["messages"], told["rate"], told["bytes_rate"]) == (10, 5, 500)
    assert (told["p50_ms"], told["p99_ms"], told["max_ms"]) == (50.0, 99.0, 99.0)
    assert percentile_ms([5_000_000], 0.5) == 5.0


def test_bodies_say_when_they_were_sent_where_there_is_room():
    assert abs(sent_ns(stamp(16) + b"xx") - time.time_ns()) < 60_000_000_000
    assert stamp(15) == b""


@given(st.binary(max_size=40))
def test_other_bodies_say_nothing(body):
    assert sent_ns(body) == -1 or body.startswith(b"lmqbench")
