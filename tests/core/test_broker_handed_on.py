"""Messages that come alone, which are handed on before they are stored."""

from __future__ import annotations

import pytest

from core.errors import FlushFailedError, MessageTooLargeError, StoreClosedError
from core.lmq.waiters import Reader
from tests.support.broker import CountingReader, make_batch, make_broker
from tests.support.store import NOW_MS, read_queue


class FirstReader(Reader):
    """Is handed messages, and notes each with the offset that its queue had then; takes them if `wants`."""

    def __init__(self, store):
        self.store = store
        self.wants = True
        self.handed = []
        self.stored = 0
        self.runs = 0

    def maybe_hand_on(self, batch, queue_offset):
        assert self.store.max_offset(self.store.find_queue(b"%LMQ%q")) == queue_offset
        self.handed.append((batch.topics[0], bytes(batch.buf[batch.body_start[0] : batch.body_end[0]]), queue_offset))
        return self.wants

    def on_stored(self):
        self.stored += 1

    def on_ready(self, now_ms):
        self.runs += 1
        return False


class FailingReader(FirstReader):
    def maybe_hand_on(self, batch, queue_offset):
        raise RuntimeError("broken")


@pytest.fixture
def handing(store):
    """Return a broker where what is published comes alone, and a reader of the one queue that `t` leads to."""
    broker, _ = make_broker(store)
    broker.bind_filter(b"t", b"%LMQ%q", hides_dollar=True)
    reader = FirstReader(store)
    broker.park(broker.open_queue(b"%LMQ%q"), reader)
    broker.is_alone = True
    return broker, reader


def test_a_message_that_comes_alone_is_handed_on_before_it_is_stored(store, handing):
    broker, reader = handing
    for number in range(3):
        broker.publish_topics(make_batch(broker, b"t", b"%d" % number), NOW_MS)
        broker.run_turn(NOW_MS)
    assert reader.handed == [(b"t", b"0", 0), (b"t", b"1", 1), (b"t", b"2", 2)]
    assert (reader.stored, reader.runs) == (3, 3)
    assert read_queue(store, b"%LMQ%q") == [(0, b"0"), (1, b"1"), (2, b"2")]


def test_others_are_given_way_once_a_message_was_handed_on_and_is_still_to_be_stored(store, handing):
    broker, reader = handing
    moments = []
    broker.give_way = lambda: moments.append((len(reader.handed), store.message_count))
    broker.publish_topics(make_batch(broker, b"t", b"x"), NOW_MS)
    broker.run_turn(NOW_MS)
    assert (moments, store.message_count) == ([(1, 0)], 1)
    reader.wants = False
    broker.publish_topics(make_batch(broker, b"t", b"y"), NOW_MS)
    broker.publish_topics(make_batch(broker, b"nobody's", b"z"), NOW_MS)
    assert (len(moments), store.message_count) == (1, 3)


def test_a_message_that_its_reader_does_not_take_is_read(store, handing):
    broker, reader = handing
    reader.wants = False
    broker.publish_topics(make_batch(broker, b"t", b"x"), NOW_MS)
    broker.run_turn(NOW_MS)
    assert (len(reader.handed), reader.stored, reader.runs) == (1, 0, 1)
    assert read_queue(store, b"%LMQ%q") == [(0, b"x")]


def test_what_comes_with_others_or_after_work_that_waits_is_not_handed_on(store, handing):
    broker, reader = handing
    broker.publish_topics(make_batch(broker, b"t", b"1", b"2"), NOW_MS)
    broker.publish_topics(make_batch(broker, b"t", b"readers have not run yet"), NOW_MS)
    broker.run_turn(NOW_MS)
    broker.is_alone = False
    broker.publish_topics(make_batch(broker, b"t", b"with others"), NOW_MS)
    broker.run_turn(NOW_MS)
    assert (reader.handed, reader.stored, reader.runs) == ([], 0, 2)
    assert len(read_queue(store, b"%LMQ%q")) == 4


def test_a_message_that_several_readers_or_several_queues_wait_for_is_not_handed_on(store, handing):
    broker, reader = handing
    other = CountingReader()
    broker.park(reader.store.find_queue(b"%LMQ%q"), other)
    broker.publish_topics(make_batch(broker, b"t", b"1"), NOW_MS)
    broker.run_turn(NOW_MS)
    broker.unpark(reader.store.find_queue(b"%LMQ%q"), other)
    broker.bind_filter(b"#", b"%LMQ%all", hides_dollar=True)
    broker.publish_topics(make_batch(broker, b"t", b"2"), NOW_MS)
    broker.run_turn(NOW_MS)
    assert (reader.handed, reader.stored, reader.runs, other.runs) == ([], 0, 2, 1)


def test_a_message_for_nobody_is_stored_as_ever(store, handing):
    broker, reader = handing
    broker.unpark(store.find_queue(b"%LMQ%q"), reader)
    broker.publish_topics(make_batch(broker, b"t", b"1"), NOW_MS)
    broker.publish_topics(make_batch(broker, b"u", b"2"), NOW_MS)
    refused = make_batch(broker, b"t", b"3")
    refused.routes[0] = None
    broker.publish_topics(refused, NOW_MS)
    assert (reader.handed, store.message_count) == ([], 2)


def test_a_message_that_cannot_be_stored_is_not_handed_on(store, handing):
    broker, reader = handing
    too_large = make_batch(broker, b"t", b"x" * (store.settings.message_bytes_max + 1))
    with pytest.raises(MessageTooLargeError):
        broker.publish_topics(too_large, NOW_MS)
    store.close()
    with pytest.raises(StoreClosedError):
        broker.publish_topics(make_batch(broker, b"t", b"x"), NOW_MS)
    broker.durability.begin_flush()
    broker.durability.end_flush(FlushFailedError("no disk"))
    with pytest.raises(StoreClosedError, match="refused a sync"):
        broker.publish_topics(make_batch(broker, b"t", b"x"), NOW_MS)
    assert (reader.handed, reader.stored) == ([], 0)


def test_a_message_whose_reader_breaks_as_it_is_handed_on_is_stored_and_not_sent_again(store, handing):
    broker, reader = handing
    queue_ref = store.find_queue(b"%LMQ%q")
    broker.unpark(queue_ref, reader)
    reader = FailingReader(store)
    broker.park(queue_ref, reader)
    faults = []
    broker.on_reader_error = lambda reader, error: faults.append((reader, str(error)))
    broker.publish_topics(make_batch(broker, b"t", b"x"), NOW_MS)
    assert faults == [(reader, "broken")]
    assert reader.stored == 1
    assert read_queue(store, b"%LMQ%q") == [(0, b"x")]
