"""What is taken and done in the queues of a virtual host, opened as each queue's terms ask for it."""

from __future__ import annotations

from core.broker import Broker
from core.message import StoredBatch
from core.queues.terms import QueueTerms
from gateway.amqp.queue_ties import Shared

GROUP = b"amqp"
BYTES_TABLE = "amqp_bytes"
COUNTED_AT_ONCE = 1_024  # messages


class QueuePops:
    """Opens and drops the pop queues of AMQP queues.

    Args:
        broker: Where they are.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._bytes = broker.table(BYTES_TABLE)
        self._counting: StoredBatch | None = None  # made when bytes are counted

    def open(self, light_name: bytes, terms: QueueTerms, start_offset: int | None = None) -> Shared:
        """Return what is taken and done in a light queue; a new one begins at `start_offset`."""
        if terms.bytes_max < 0:
            return self._broker.pop.open(light_name, GROUP, start_offset)
        if self._counting is None:
            self._counting = StoredBatch(COUNTED_AT_ONCE)
        return self._broker.pop.open_counted(light_name, GROUP, start_offset, self._counting, self._bytes)

    def drop(self, light_name: bytes) -> None:
        """Forget it; harmless where there is nothing."""
        self._broker.pop.drop(light_name, GROUP)
        self._bytes.delete(light_name)
