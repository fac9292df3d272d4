from __future__ import annotations

import shutil

import pytest

from core.errors import FlushFailedError, StoreClosedError
from core.message import FLAG_MARK, FLAG_RETAIN, PublishBatch, StoredBatch
from tests.support.broker import CountingReader, make_batch, make_broker
from tests.support.store import NOW_MS, open_store, read_queue


def publish(broker, topic, *bodies, flag=0):
    batch = make_batch(broker, topic, *bodies, flag=flag)
    broker.publish_batch(batch, NOW_MS)
    return batch


def test_a_message_is_written_once_and_stands_in_each_queue_whose_filter_matches(store):
    broker, _ = make_broker(store)
    for topic_filter, queue in ((b"a/#", b"%LMQ%one"), (b"a/+", b"%LMQ%two"), (b"x/#", b"%LMQ%three")):
        broker.bind_filter(topic_filter, queue, hides_dollar=True)
    before = store.written_until
    publish(broker, b"a/b", b"1", b"2")
    assert [read_queue(store, name) for name in (b"%LMQ%one", b"%LMQ%two", b"%LMQ%three")] == [
        [(0, b"1"), (1, b"2")],
        [(0, b"1"), (1, b"2")],
        [],
    ]
    into = StoredBatch(8)
    assert store.read(store.find_queue(b"LMQ_PARENT/0"), 0, into, 8, 1 << 20) == 2
    assert (store.message_count, store.dispatch_count) == (2, 4)
    assert store.written_until - before == sum(into.record_end[i] - into.record_start[i] for i in range(2))


def test_an_unbound_queue_gets_nothing_more(store):
    broker, _ = make_broker(store)
    for _ in range(2):
        broker.bind_filter(b"a", b"%LMQ%q", hides_dollar=True)
    for body in (b"1", b"2", b"3"):
        publish(broker, b"a", body)
        if body != b"3" and broker.router.matches(b"a"):
            broker.unbind_filter(b"a", b"%LMQ%q")
    assert read_queue(store, b"%LMQ%q") == [(0, b"1"), (1, b"2")]


def test_a_message_that_is_given_back_wakes_who_waits_for_its_queue(store):
    broker, turns = make_broker(store)
    broker.bind_filter(b"t", b"%LMQ%q", hides_dollar=True)
    publish(broker, b"t", b"1", b"2")
    pop = broker.pop.open(b"%LMQ%q", b"g")
    batch = StoredBatch(2)
    pop.take(batch, 2, 1 << 20, 0, NOW_MS)
    reader = CountingReader()
    broker.park(pop.queue_ref, reader)
    broker.run_turn(NOW_MS)
    before, asked = reader.runs, turns.turns
    pop.ack(0)
    assert turns.turns == asked
    pop.nack(1)
    assert turns.turns == asked + 1
    broker.run_turn(NOW_MS)
    broker.run_turn(NOW_MS)
    assert reader.runs == before + 1


def test_messages_whose_invisible_time_is_over_wake_who_waits_in_as_many_turns_as_it_takes(store, monkeypatch):
    monkeypatch.setattr("core.pop.pop_service.SHOW_COUNT_MAX", 17)
    broker, turns = make_broker(store)
    asked = []
    broker.request_timer = lambda: asked.append(broker.next_deadline_ms())
    broker.bind_filter(b"t", b"%LMQ%q", hides_dollar=True)
    publish(broker, b"t", *[b"%d" % number for number in range(40)])
    pop = broker.pop.open(b"%LMQ%q", b"g")
    pop.take(StoredBatch(40), 40, 1 << 20, NOW_MS + 500, NOW_MS)
    assert asked == [NOW_MS + 500]
    reader = CountingReader()
    broker.park(pop.queue_ref, reader)
    broker.run_turn(NOW_MS)
    before, asked_turns = reader.runs, turns.turns
    broker.handle_timer(NOW_MS + 500)
    assert (pop.ready_count, turns.turns) == (16, asked_turns + 1)
    for _ in range(4):
        broker.run_turn(NOW_MS + 500)
    assert (pop.ready_count, reader.runs) == (40, before + 2)
    assert broker.next_deadline_ms() is None


def test_the_last_retained_message_of_a_topic_is_kept_and_an_empty_one_deletes_it(store):
    broker, _ = make_broker(store)
    publish(broker, b"a/b", b"old", b"new", flag=FLAG_RETAIN)
    assert [topic for topic, _ in broker.retained.match(b"a/+")] == [b"a/b"]
    assert b"new" in broker.retained.get(b"a/b")
    publish(broker, b"a/b", b"", flag=FLAG_RETAIN)
    assert broker.retained.get(b"a/b") is None


def test_after_a_failed_sync_no_message_is_taken(store):
    broker, _ = make_broker(store)
    publish(broker, b"t", b"1")
    broker.engine.durability.begin_flush()
    broker.engine.durability.end_flush(FlushFailedError("EIO"))
    with pytest.raises(StoreClosedError):
        publish(broker, b"t", b"2")


def flush(broker):
    broker.engine.durability.keep_all()
    store = broker.engine.store
    store.begin_flush(is_all=broker.engine.durability.begin_flush()).run()
    store.end_flush()
    broker.engine.durability.end_flush(None)


def retained_bodies(broker):
    """Return topic and body of all retained messages."""
    one = StoredBatch(1)
    found = {}
    for topic, record in broker.retained.match(b"#"):
        assert broker.read_record(record, one)
        found[topic] = bytes(one.buf[one.body_start[0] : one.body_end[0]])
    return found


def test_retained_messages_that_the_log_alone_has_are_there_after_a_kill(store, tmp_path):
    broker, _ = make_broker(store, is_sync=False)
    publish(broker, b"kept", b"1", flag=FLAG_RETAIN)
    publish(broker, b"replaced", b"1", flag=FLAG_RETAIN)
    publish(broker, b"cleared", b"1", flag=FLAG_RETAIN)
    flush(broker)
    publish(broker, b"replaced", b"2", b"3", flag=FLAG_RETAIN)
    publish(broker, b"cleared", b"", flag=FLAG_RETAIN)
    publish(broker, b"new", b"4", flag=FLAG_RETAIN)
    publish(broker, b"new", b"not retained")
    killed = shutil.copytree(tmp_path, tmp_path.with_name(tmp_path.name + ".killed"))
    for _ in range(2):  # to be killed again before anything is flushed changes nothing
        again = open_store(killed)
        found, _ = make_broker(again, is_sync=False)
        assert retained_bodies(found) == {b"kept": b"1", b"replaced": b"3", b"new": b"4"}
        killed = shutil.copytree(killed, killed.with_name(killed.name + "+"))
        again.close()


def test_after_a_kill_only_what_no_flush_covered_is_taken_in_again(store, tmp_path):
    broker, _ = make_broker(store, is_sync=False)
    publish(broker, b"t", b"1", flag=FLAG_RETAIN)
    flush(broker)
    end = store.written_until
    publish(broker, b"t", b"2", flag=FLAG_RETAIN)
    again = open_store(shutil.copytree(tmp_path, tmp_path.with_name(tmp_path.name + ".killed")))
    assert again.covered_until == end < again.written_until
    make_broker(again)
    assert again.covered_until == again.written_until
    again.close()


def test_message_that_only_looks_retained_is_not(store):
    broker, _ = make_broker(store)
    for topic, flag in ((b"T", FLAG_MARK | FLAG_RETAIN), (b"LMQ_PARENT", FLAG_RETAIN)):
        batch = PublishBatch(1)
        batch.topics.append(topic)
        batch.routes.append(broker.route_rocketmq(topic, 0, []))
        batch.buf = b"body"
        batch.body_end[0] = 4
        batch.flag[0] = flag  # a RocketMQ producer's own
        batch.count = 1
        broker.publish_batch(batch, NOW_MS)
    again, _ = make_broker(store)
    assert retained_bodies(again) == {}


def test_explain_names_queues_filters_and_readers(store):
    broker, _ = make_broker(store)
    broker.bind_filter(b"a/#", b"%LMQ%q", hides_dollar=True)
    broker.bind_filter(b"a/+", b"%LMQ%q", hides_dollar=True)
    broker.bind_filter(b"a/+", b"%LMQ%q", hides_dollar=True)
    for _ in range(2):
        broker.park(broker.intern_queue(b"%LMQ%q"), CountingReader())
    (found,) = broker.explain(b"a/b")
    assert (found.name, found.filters, found.readers) == (b"%LMQ%q", {b"a/#": 1, b"a/+": 2}, 8)
    assert broker.explain(b"b") == []


def test_segments_that_a_holder_needs_are_not_retired(store):
    broker, _ = make_broker(store)
    broker.bind_filter(b"t", b"%LMQ%q", hides_dollar=True)
    queue_ref = broker.intern_queue(b"%LMQ%q")
    needed = [0]
    asked = []
    broker.hold(lambda: asked.append(1) or [(queue_ref, needed[0])])
    for _ in range(8):
        publish(broker, b"t", *[b"x" * 1000] * 30)
        store.flush()
        store.prepare()
    late_ms = NOW_MS + 30 * 24 * 3_600_000
    assert broker.retire(NOW_MS) == 0
    assert asked == []  # nothing is old enough, so nobody need say what it holds
    assert broker.retire(late_ms) == 0
    assert asked == [1]
    needed[0] = broker.max_offset(queue_ref)
    assert broker.retire(late_ms) > 0
    assert broker.min_offset(queue_ref) > 0
    assert broker.max_offset(queue_ref) == 240
