from __future__ import annotations

import pytest

from core.broker import Broker
from core.metrics import Metrics
from gateway.amqp.pace import TURN_BYTES_MAX, Pace
from tests.support.mqtt_door import MemoryTransport
from tests.support.store import NOW_MS, open_store


@pytest.fixture
def broker(tmp_path):
    store = open_store(tmp_path)
    yield Broker(store, parent_topic=b"LMQ_PARENT", is_sync=False, metrics=Metrics())
    store.close()


def test_connection_that_sent_a_lot_is_read_again_after_the_next_turn(broker):
    transport = MemoryTransport(1)
    pace = Pace(broker, transport)
    pace.note_taken(TURN_BYTES_MAX)
    assert transport.is_reading
    pace.note_taken(1)
    assert not transport.is_reading
    broker.run_turn(NOW_MS)
    assert transport.is_reading
    pace.note_taken(TURN_BYTES_MAX)
    assert transport.is_reading


def test_connection_that_is_gone_is_not_read_again(broker):
    transport = MemoryTransport(1)
    pace = Pace(broker, transport)
    pace.note_taken(TURN_BYTES_MAX + 1)
    pace.end()
    broker.run_turn(NOW_MS)
    assert not transport.is_reading
