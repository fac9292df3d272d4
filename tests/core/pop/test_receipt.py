"""A receipt names its message, and outlives the process that gave it."""

from __future__ import annotations

from core.message import StoredBatch
from core.pop.pop_service import PopService
from core.pop.receipt import Receipt
from tests.support.stores import MemoryJournal, MemoryQueues


def test_a_receipt_is_good_after_a_restart_as_long_as_the_message_is_hidden():
    store, journal = MemoryQueues(), MemoryJournal()
    queue = PopService(store, journal).open(b"%LMQ%q", b"g")
    store.grow(queue.queue_ref, 2)
    batch = StoredBatch(2)
    queue.take(batch, 2, 1 << 40, 500, 0)
    given = [queue.receipt(batch, i) for i in range(2)]
    assert given == [Receipt(0, 0, 1), Receipt(0, 1, 1)]
    service = PopService(store, journal)
    queue = service.open(b"%LMQ%q", b"g")
    assert queue.ack_receipts(given[:1]) == 0
    service.expire(500)
    assert queue.ack_receipts(given) == 2
