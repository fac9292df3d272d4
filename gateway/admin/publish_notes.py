"""What is not to be seen in the way of a publish: priorities, full queues, alternates that are not there."""

from __future__ import annotations

from core.lmq.queue_name import amqp_level_name
from gateway.amqp.queues import VirtualHost
from gateway.amqp.routing import alternate_name
from gateway.amqp.shared_queue import SharedQueue
from gateway.amqp.tracing import Trace


def find_notes(vhost: VirtualHost, trace: Trace, priority: object) -> list[str]:
    """Return a line for each queue and exchange of a way that there is more to say of."""
    notes: list[str] = []
    for name in trace.queues:
        queue = vhost.find(name)
        if queue is None:
            notes.append(f"there is no queue '{name}'")
        else:
            notes += _notes_of(queue, priority if isinstance(priority, int) else 0)
    for exchange in trace.passed:
        alternate = alternate_name(vhost.exchanges, exchange)
        if alternate and vhost.exchanges.find(alternate) is None:
            notes.append(f"exchange '{exchange.name}' has the alternate '{alternate}', which is not there")
    return notes


def _notes_of(queue: SharedQueue, priority: int) -> list[str]:
    notes: list[str] = []
    level = min(priority, queue.terms.priority_max)
    if level > 0:
        light_name = amqp_level_name(queue.light_name, level).decode()
        notes.append(f"queue '{queue.name}' has it in the light queue of priority {level}, {light_name}")
    if queue.terms.is_refusing and queue.is_open and not queue.find_room(1).admit(0):
        notes.append(f"queue '{queue.name}' is full and refuses it now")
    return notes
