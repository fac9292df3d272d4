"""What is retained where batches turn out to be lost, in whatever order that is told."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st

from core.broker import Broker
from core.errors import StoreClosedError
from core.message import FLAG_MARK, FLAG_RETAIN
from core.metrics import Metrics
from tests.support.broker import make_batch
from tests.support.late_engine import make_late
from tests.support.store import NOW_MS, open_store

LOST = StoreClosedError("gone")


class Teller:
    """An engine's tickets, told by hand."""

    def __init__(self, engine):
        self.waiting = []
        engine.when_stored = lambda _ticket, then: self.waiting.append(then)

    def tell(self, i, error):
        self.waiting[i](error)


def retain(broker, topic, body):
    batch = make_batch(broker, topic, body, flag=FLAG_MARK | FLAG_RETAIN)
    batch.retained_count = 1
    broker.publish_batch(batch, NOW_MS)


def retained_of(broker, topic):
    record = broker.retained.get(topic)
    return b"" if record is None else record[88 : 88 + int.from_bytes(record[84:88], "big")]


def make_site(path):
    store = open_store(path)
    engine = make_late(store, is_sync=False)
    broker = Broker(engine, parent_topic=b"LMQ_PARENT", metrics=Metrics())
    return store, broker, Teller(engine)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([b"a", b"b"]), st.sampled_from([b"", b"x", b"y"]), st.booleans()), max_size=8),
    st.randoms(use_true_random=False),
)
def test_a_topic_is_what_the_newest_message_that_is_not_lost_made_it(tmp_path_factory, changes, random):
    store, broker, teller = make_site(tmp_path_factory.mktemp("store"))
    for topic, body, _ in changes:
        retain(broker, topic, body)
    order = list(range(len(changes)))
    random.shuffle(order)
    for i in order:
        teller.tell(i, LOST if changes[i][2] else None)
    for topic in (b"a", b"b"):
        stored = [body for name, body, is_lost in changes if name == topic and not is_lost]
        assert retained_of(broker, topic) == (stored[-1] if stored else b"")
    assert broker._retaining._unsure == {}
    store.close()


def test_a_message_counts_until_it_is_lost(tmp_path):
    store, broker, teller = make_site(tmp_path)
    retain(broker, b"t", b"old")
    teller.tell(0, None)
    retain(broker, b"t", b"new")
    assert retained_of(broker, b"t") == b"new"
    teller.tell(1, LOST)
    assert retained_of(broker, b"t") == b"old"
    retain(broker, b"t", b"")
    assert retained_of(broker, b"t") == b""
    teller.tell(2, LOST)
    assert retained_of(broker, b"t") == b"old"
    store.close()
