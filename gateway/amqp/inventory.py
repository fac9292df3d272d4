"""What the AMQP door has, for operators."""

from __future__ import annotations

from collections.abc import Iterator

from core.broker import Broker
from gateway.amqp.services import AmqpServices
from gateway.amqp.shared_queue import SharedQueue
from gateway.inventory import ConnectionEntry, Inventory, QueueEntry, SessionEntry, describe_connection, text_of


class AmqpInventory(Inventory):
    """Connections, and the queues of all virtual hosts."""

    def __init__(self, services: AmqpServices) -> None:
        self._services = services

    def connections(self) -> Iterator[ConnectionEntry | None]:
        """Give the open connections."""
        connections = self._services.connections
        for one in list(connections):
            yield describe_connection(one.transport, one.identity, one.client) if one in connections else None

    def sessions(self) -> Iterator[SessionEntry]:
        """Give none: nothing outlives a connection but queues."""
        return iter(())

    def queues(self) -> Iterator[QueueEntry | None]:
        """Give the queues; expired messages that nobody has asked for are counted for up to 10 s."""
        services = self._services
        for vhost in services.vhosts:
            for queue in vhost:
                yield None if queue.is_deleted else describe_queue(services.broker, vhost.name, queue)
            yield None


def describe_queue(broker: Broker, vhost: str, queue: SharedQueue) -> QueueEntry:
    """Return the entry of a queue; expired messages that nobody has asked for are counted for up to 10 s."""
    queue_ref = broker.find_queue(queue.light_name)
    min_offset, max_offset = (broker.min_offset(queue_ref), broker.max_offset(queue_ref)) if queue_ref >= 0 else (0, 0)
    # One that nobody has used is not opened for its figures.
    is_used = max_offset > min_offset or queue.terms.priority_max > 0
    return QueueEntry(
        name=queue.name,
        light_queue=text_of(queue.light_name),
        min_offset=min_offset,
        max_offset=max_offset,
        readers=queue.reader_count(),
        ready=queue.pop.ready_count if is_used else 0,
        unacked=queue.pop.unacked_count if is_used else 0,
        vhost=vhost,
    )
