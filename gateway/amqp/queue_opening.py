"""Queues that are claimed and opened before anything is taken of them, or said of their length."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pamqp.commands import Basic, Queue as QueueMethod

from core.broker import Broker
from core.errors import LmqError, QueueLimitError
from gateway.amqp.errors import AmqpError
from gateway.amqp.queue_pops import QueuePops
from gateway.amqp.refusals import Refusals
from gateway.amqp.reply_codes import ReplyCode
from gateway.amqp.shared_queue import SharedQueue

Outcome = Callable[[LmqError | None], None]
OF_A_QUEUE = (QueueMethod.Declare, QueueMethod.Delete, QueueMethod.Purge, Basic.Consume, Basic.Get)
QUEUE_KEY = b"amqp/queue/"  # begins the key that a queue is claimed by, before the name of its light queue


class QueueOpening:
    """The queues of one virtual host: on first use each is made this gateway's alone, and its ends known.

    Args:
        broker: Asks the engine, which may answer at once.
        vhost: The virtual host's name, for errors.
        pops: Knows the light queues of a queue.
        refusals: Knows those beside it.
    """

    def __init__(self, broker: Broker, vhost: str, pops: QueuePops, refusals: Refusals) -> None:
        self._broker = broker
        self._vhost = vhost
        self._pops = pops
        self._refusals = refusals
        self._under_way: dict[SharedQueue, Outcome] = {}  # what is told when it is open, or cannot be
        self._failed: dict[str, Exception] = {}  # by name, until a client was told

    def open(self, queue: SharedQueue, then: Outcome) -> None:
        """Claim a queue and open its light queues; then call back, once. An error is also kept for `check`."""
        if queue not in self._under_way:
            self._under_way[queue] = then
            self._broker.claim(QUEUE_KEY + queue.light_name, partial(self._note_claim, queue))

    def check(self, name: str) -> None:
        """Tell, once, what kept a queue from being opened.

        Raises:
            AmqpError: NOT_FOUND; a client may come again.
            QueueLimitError: There is no room for another light queue.
        """
        error = self._failed.pop(name, None)
        if error is not None:
            raise error

    def close(self, queue: SharedQueue) -> None:
        """Let another gateway have a queue that is deleted here, or cannot be opened."""
        if self._under_way.pop(queue, None) is not None or queue.is_open:
            self._broker.release(QUEUE_KEY + queue.light_name)

    def fail(self, queue: SharedQueue, error: Exception) -> None:
        """Keep an error for the next that asks for the queue."""
        self._failed[queue.name] = error

    def _note_claim(self, queue: SharedQueue, error: LmqError | None) -> None:
        if error is not None:
            self._give_up(queue, error, self._to_be_had(queue, error))
        elif queue in self._under_way:
            names = self._pops.light_names(queue.light_name, queue.terms) + self._refusals.light_names(queue)
            try:
                refs = [self._broker.intern_queue(name) for name in names]
            except QueueLimitError as limit:
                self._give_up(queue, limit, limit)
                return
            left = set(refs)
            for queue_ref in refs:
                self._broker.open_queue(queue_ref, partial(self._note_open, queue, left, queue_ref))

    def _note_open(self, queue: SharedQueue, left: set[int], queue_ref: int, error: LmqError | None) -> None:
        left.discard(queue_ref)
        if error is not None:
            self._give_up(queue, error, self._to_be_had(queue, error))
        elif not left and queue in self._under_way:
            then = self._under_way.pop(queue)
            queue.is_open = True
            then(None)

    def _to_be_had(self, queue: SharedQueue, error: LmqError) -> AmqpError:
        reason = f"queue '{queue.name}' in vhost '{self._vhost}' is not to be had now: {error}"
        return AmqpError(ReplyCode.NOT_FOUND, reason)

    def _give_up(self, queue: SharedQueue, error: LmqError, told: Exception) -> None:
        if queue in self._under_way:
            then = self._under_way[queue]
            self.close(queue)
            self.fail(queue, told)
            then(error)
