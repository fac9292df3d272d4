from __future__ import annotations

from core.lmq.waiters import Reader
from core.reader_turns import READERS_MAX, ROUNDS_MAX
from tests.support.broker import CountingReader, make_batch, make_broker
from tests.support.store import NOW_MS


class ChunkReader(Reader):
    """Has so many chunks to read, and notes in `order` each that it read."""

    def __init__(self, name, chunks, order):
        self.name = name
        self.chunks = chunks
        self.order = order

    def on_ready(self, now_ms):
        self.chunks -= 1
        self.order.append(self.name)
        return self.chunks > 0


class BrokenReader(Reader):
    def on_ready(self, now_ms):
        raise RuntimeError("broken")


def publish(broker, topic, *bodies):
    broker.publish_batch(make_batch(broker, topic, *bodies), NOW_MS)


def test_a_parked_reader_runs_once_a_turn_however_much_its_queues_grew(store):
    broker, turns = make_broker(store)
    reader, other = CountingReader(), CountingReader()
    for name in (b"%LMQ%a", b"%LMQ%b"):
        broker.bind_filter(b"t", name, hides_dollar=True)
        broker.park(broker.intern_queue(name), reader)
    broker.park(broker.intern_queue(b"%LMQ%c"), other)
    publish(broker, b"t", b"1")
    publish(broker, b"t", b"2")
    assert turns.turns == 1
    broker.run_turn(NOW_MS)
    broker.run_turn(NOW_MS)
    assert (reader.runs, other.runs) == (1, 0)


def test_an_unparked_reader_does_not_run(store):
    broker, _ = make_broker(store)
    reader, queue_ref = CountingReader(), broker.intern_queue(b"%LMQ%a")
    broker.bind_filter(b"t", b"%LMQ%a", hides_dollar=True)
    broker.park(queue_ref, reader)
    broker.unpark(queue_ref, reader)
    publish(broker, b"t", b"1")
    broker.run_turn(NOW_MS)
    assert reader.runs == 0


def test_a_reader_that_asks_runs_in_the_next_turn_unless_it_takes_it_back(store):
    broker, turns = make_broker(store)
    reader, other = CountingReader(), CountingReader()
    broker.request_run(reader)
    broker.request_run(other)
    broker.cancel_run(other)
    assert turns.turns == 1
    broker.run_turn(NOW_MS)
    assert (reader.runs, other.runs) == (1, 0)


def test_no_more_readers_run_in_a_turn_than_fit_and_the_rest_comes_first_in_the_next(store):
    broker, _ = make_broker(store)
    broker.bind_filter(b"t", b"%LMQ%q", hides_dollar=True)
    readers = [CountingReader() for _ in range(2 * READERS_MAX + 1)]
    for reader in readers[1:]:
        broker.park(broker.intern_queue(b"%LMQ%q"), reader)
    broker.request_run(readers[0])
    publish(broker, b"t", b"1")
    broker.run_turn(NOW_MS)
    assert sum(reader.runs for reader in readers) == READERS_MAX
    left = [reader for reader in readers if not reader.runs]
    broker.cancel_run(left[-1])
    publish(broker, b"t", b"2")
    broker.run_turn(NOW_MS)
    assert [reader.runs for reader in left] == [1] * READERS_MAX + [0]
    while broker.has_work:
        broker.run_turn(NOW_MS)
    assert all(reader.runs for reader in readers)


def test_readers_with_more_to_do_go_round_and_the_rest_waits_for_the_next_turn(store):
    broker, turns = make_broker(store)
    order = []
    for name, chunks in ("a", 2), ("b", 3), ("c", 1), ("d", ROUNDS_MAX + 1):
        broker.request_run(ChunkReader(name, chunks, order))
    broker.run_turn(NOW_MS)
    assert "".join(order) == "abcd" + "abd" + "bd" + "d" * (ROUNDS_MAX - 3)
    assert turns.turns == 2
    broker.run_turn(NOW_MS)
    assert order.count("d") == ROUNDS_MAX + 1
    assert turns.turns == 2


def test_one_readers_fault_stops_nobody_else(store):
    broker, _ = make_broker(store)
    errors = []
    broker.on_reader_error = lambda reader, error: errors.append(str(error))
    reader = CountingReader()
    broker.request_run(BrokenReader())
    broker.request_run(reader)
    broker.run_turn(NOW_MS)
    assert (errors, reader.runs) == (["broken"], 1)
