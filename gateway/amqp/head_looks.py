"""Looks, every few seconds, for queues whose first messages are expired, with no work for those in which nothing is."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator

from core.broker import Broker
from core.message import StoredBatch
from gateway.amqp.head_expiries import may_be_expired
from gateway.amqp.queue_pops import QueuePops
from gateway.amqp.queue_rows import NextOffsets, QueueRows
from gateway.amqp.queues import VirtualHost

AT_ONCE = 1_024  # queues that are compared in one step
_NOT_LOOKED = -1


class HeadLooks:
    """Knows of each queue up to which offset all its messages were done at the last look.

    A queue that was given none since then has nothing that could expire, and is passed over: to compare costs some
    30 ns, a look 3 us.

    Args:
        broker: Where the queues are.
        pops: Knows how much of each is done.
        stored: The door's own batch to read into.
    """

    def __init__(self, broker: Broker, pops: QueuePops, stored: StoredBatch) -> None:
        self._broker = broker
        self._pops = pops
        self._stored = stored
        self._offsets = NextOffsets(broker)
        self._hosts: dict[VirtualHost, tuple[QueueRows, array[int]]] = {}

    def drop_expired(self, vhosts: Iterable[VirtualHost], now_ms: int) -> Iterator[None]:
        """Finish the expired messages that stand first in the queues of all virtual hosts, in steps."""
        self._hosts = {vhost: self._take_in(vhost) for vhost in vhosts}
        yield from self._offsets.read()
        for vhost, (rows, done) in self._hosts.items():
            for first in range(0, len(rows), AT_ONCE):
                end = min(first + AT_ONCE, len(rows))
                offsets = rows.next_offsets(first, end, self._offsets)
                if offsets != done[first:end]:
                    for number in range(first, end):
                        if offsets[number - first] != done[number]:
                            done[number] = self._look(vhost, rows, number, offsets[number - first], now_ms)
                            yield
                yield

    def _take_in(self, vhost: VirtualHost) -> tuple[QueueRows, array[int]]:
        rows, done = self._hosts.get(vhost, (None, array("q")))
        if rows is None or rows.is_worn:
            rows, done = QueueRows(self._broker, vhost), array("q")
        rows.take_in()
        done.extend([_NOT_LOOKED] * (len(rows) - len(done)))
        return rows, done

    def _look(self, vhost: VirtualHost, rows: QueueRows, number: int, next_offset: int, now_ms: int) -> int:
        """Look at one queue; return `next_offset` where all before it is done and nothing else can grow too old."""
        queue = rows.queues[number]
        if queue.is_deleted:
            return next_offset
        offset = self._pops.floor(queue.light_name, queue.first_offset)
        vhost.open(queue)
        if not queue.is_open:
            return _NOT_LOOKED
        if may_be_expired(self._broker, queue, offset, self._stored, now_ms):
            queue.drop_expired(now_ms)
            return _NOT_LOOKED
        return next_offset if offset >= next_offset else _NOT_LOOKED
