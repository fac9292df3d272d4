"""Queues that refuse messages for want of room, and the dead letters of refused messages.

Refused messages lie in a light queue beside the queue's own until they went on, so a kill loses none of them.
"""

from __future__ import annotations

from functools import partial

from core.broker import Broker
from core.errors import LmqError
from core.lmq.queue_name import amqp_refused_name
from core.message import StoredBatch
from gateway.amqp.argument_rules import DEAD_LETTER_EXCHANGE, DEAD_LETTER_KEY, MAX_LENGTH
from gateway.amqp.field_table import Field
from gateway.amqp.queue_arguments import KeptArguments
from gateway.amqp.queue_pops import QueuePops
from gateway.amqp.queue_ties import Burial, Expiries
from gateway.amqp.shared_queue import SharedQueue


class Refusals:
    """Has the queues of a virtual host asked for room, where they are told to refuse.

    Args:
        broker: Asks them.
        stored: The door's own batch to read into.
        pops: As of the queues themselves.
        burial: Takes the dead letters.
        expiries: As of the queues themselves.
    """

    def __init__(
        self, broker: Broker, stored: StoredBatch, pops: QueuePops, burial: Burial, expiries: Expiries
    ) -> None:
        self._broker = broker
        self._stored = stored
        self._pops = pops
        self._burial = burial
        self._expiries = expiries
        self._asked: dict[bytes, int] = {}  # light queue and its number
        self._beside: dict[bytes, SharedQueue] = {}  # by the light queue that refused

    def light_names(self, queue: SharedQueue) -> list[bytes]:
        """Return the light queue beside a queue that its dead letters to be lie in, where it has one."""
        is_beside = _is_refusing(queue) and queue.terms.buries_refused
        return [amqp_refused_name(queue.light_name)] if is_beside else []

    def start_empty(self, queue: SharedQueue) -> None:
        """Begin with no dead letters to be, for a new queue; before it begins itself."""
        if _is_refusing(queue) and queue.terms.buries_refused:
            self._make(queue).start_empty()

    def start(self, queue: SharedQueue) -> None:
        """Ask a queue for room from now on; what is left of its dead letters goes on."""
        if not _is_refusing(queue):
            return
        beside = self._make(queue) if queue.terms.buries_refused else None
        self._asked[queue.light_name] = queue.pop.queue_ref
        full = self._broker.detours.full
        full.add(queue.pop.queue_ref, queue)
        if beside is not None:
            full.send_instead(queue.pop.queue_ref, beside.light_name)
            beside.watch()

    def renew(self, queue: SharedQueue) -> None:
        """Ask a queue by the terms that it has now; dead letters that wait beside it go on."""
        queue_ref = self._asked.pop(queue.light_name, None)
        if queue_ref is not None:
            self._broker.detours.full.drop(queue_ref)
        if _is_refusing(queue) and queue.terms.buries_refused:
            before = self._beside.pop(queue.light_name, None)
            if before is not None:
                before.stop()
            else:
                self._open(self._make(queue))
        self.start(queue)

    def _open(self, beside: SharedQueue) -> None:
        """Begin with a queue beside one that is open already; it runs when its ends are known."""
        beside.start_empty()
        self._broker.open_queue(beside.pop.queue_ref, partial(_run, beside))

    def stop(self, queue: SharedQueue) -> None:
        """Ask a queue no more, and forget what it refused: it is deleted, or could not begin."""
        queue_ref = self._asked.pop(queue.light_name, None)
        if queue_ref is not None:
            self._broker.detours.full.drop(queue_ref)
        beside = self._beside.pop(queue.light_name, None)
        if beside is not None:
            beside.delete()

    def forget(self, light_name: bytes) -> None:
        """Forget what a queue refused that went with the process."""
        self._pops.drop(amqp_refused_name(light_name))

    def _make(self, queue: SharedQueue) -> SharedQueue:
        """Return the queue beside another, of the same name and without room: all that comes is too much."""
        if queue.light_name not in self._beside:
            terms = queue.terms
            said = {DEAD_LETTER_EXCHANGE: terms.dead_letter_exchange, DEAD_LETTER_KEY: terms.dead_letter_key}
            arguments: KeptArguments = {MAX_LENGTH: Field("long", 0)}
            arguments |= {name: Field("longstr", text.encode()) for name, text in said.items() if text is not None}
            self._beside[queue.light_name] = SharedQueue(
                self._broker,
                queue.name,
                amqp_refused_name(queue.light_name),
                self._stored,
                durable=queue.is_durable,
                auto_delete=False,
                owner=None,
                arguments=arguments,
                pops=self._pops,
                burial=self._burial,
                expiries=self._expiries,
            )
        return self._beside[queue.light_name]


def _run(beside: SharedQueue, error: LmqError | None) -> None:
    if error is None:
        beside.run_soon()


def _is_refusing(queue: SharedQueue) -> bool:
    return queue.terms.is_refusing and queue.terms.has_length
