"""The end of a commit: publishes what waited for it, answers once that is stored, and holds methods that must wait."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pamqp import base
from pamqp.commands import Basic, Tx

from core.broker import Broker
from core.errors import LmqError
from gateway.amqp.answers import Answers
from gateway.amqp.channel import Channel
from gateway.amqp.errors import AmqpError
from gateway.amqp.output import ConnectionOutput
from gateway.amqp.publishing import Publisher
from gateway.amqp.queues import VirtualHost
from gateway.amqp.reply_codes import ReplyCode
from gateway.amqp.taken_names import name_of
from gateway.amqp.transaction import Transaction

STEPS_MAX = 164  # of a turn: 64 of 1,024 messages, and 100 that end early because they go to many queues


class HeldPublisher:
    """Publishes what waited for a commit, so that a crash leaves all of it or nothing.

    Args:
        publisher, output, origin, peer_host: Of the connection.
        broker: Keeps together what one turn publishes.
    """

    def __init__(
        self, publisher: Publisher, broker: Broker, output: ConnectionOutput, origin: bytes, peer_host: bytes
    ) -> None:
        self._publisher = publisher
        self._broker = broker
        self._output = output
        self._origin = origin
        self._peer_host = peer_host

    def publish(self, transaction: Transaction, now_ms: int) -> bool:
        """Publish what one turn may; return whether more is left, which is kept together by itself.

        Raises:
            AmqpError: As `Publisher.publish`; what precedes the fault is published.
        """
        self._broker.keep_together(on=True)
        try:
            return self._publish(transaction, now_ms)
        finally:
            self._broker.keep_together(on=False)

    def _publish(self, transaction: Transaction, now_ms: int) -> bool:
        for _ in range(STEPS_MAX):
            run = transaction.next_step()
            if run is None:
                return False
            run.batch.origin = self._origin
            run.batch.born_host = self._peer_host
            self._publisher.publish(run, self._output, None, now_ms)
            refused = [i for i in self._broker.detours.full.refused if i < run.batch.appended]
            if not transaction.note_published(run, len(refused)):
                return False
        return True


class Commits:
    """What is left to do for the transactions of a connection once their messages are stored, and what waits for that.

    Args:
        answers, output: Of the connection.
    """

    __slots__ = ("_answers", "_output", "are_awaited")

    def __init__(self, answers: Answers, output: ConnectionOutput) -> None:
        self._answers = answers
        self._output = output
        self.are_awaited = False  # they, a deletion, or answers, by a method; until then nothing is read

    def must_wait(self, channel: Channel, method: base.Frame, vhost: VirtualHost | None) -> bool:
        """Return whether a method must wait.

        Where it waits for a commit of its channel, or for the deletion of a queue of its name, to be on the disk,
        nothing more is read or done meanwhile. So it is where a basic.get waits for the answers before its own: it
        finds what is there in its turn, and what follows finds what it left.

        Raises:
            DiskFullError: A declaration would wait until the disk has room again.
        """
        self.are_awaited = channel.transaction is not None and channel.transaction.is_committing
        if not self.are_awaited and isinstance(method, Basic.Get) and not self._answers.are_prompt():
            self._answers.when_prompt(self._go_on)
            self.are_awaited = True
        if self.are_awaited:
            self._output.transport.pause_reading()
            return True
        if vhost is None or not vhost.must_wait(method, channel.last_queue):
            return False
        name = name_of(method)
        if name is not None and vhost.taken.tell(name, self._go_on):
            vhost.broker.check_room()
            self.are_awaited = True
            self._output.transport.pause_reading()
        return True

    def _go_on(self) -> None:
        if self.are_awaited:
            self.are_awaited = False
            self._output.transport.resume_reading()

    def wait(
        self,
        channel: Channel,
        ticket: int,
        settle: Callable[[], AmqpError | None],
        refuse: Callable[[AmqpError], None],
        fault: AmqpError | None,
    ) -> None:
        """Finish the commit once what has the ticket is stored, 0: nothing was published.

        Args:
            channel: Of the transaction.
            ticket: As `Transaction.finish` gives it.
            settle: Settles what the transaction settled; returns what of it is against the rules.
            refuse: Answers a commit that has a fault.
            fault: What is wrong with what it published; None: all is taken.
        """
        then = partial(self._finish, channel, settle, refuse, fault)
        if ticket:
            self._answers.when_safe(ticket, then)
        else:
            then(None)

    def _finish(
        self,
        channel: Channel,
        settle: Callable[[], AmqpError | None],
        refuse: Callable[[AmqpError], None],
        fault: AmqpError | None,
        error: LmqError | None,
    ) -> None:
        channel.transaction.is_committing = False
        self._go_on()
        if error is not None:
            self._output.fail(error)
        if not self._output.is_open(channel):
            return
        fault = settle() or fault  # first what ends the connection
        if fault is None:
            self._answers.give(channel, Tx.CommitOk())
        else:
            self._answers.give(channel, None, then=partial(refuse, fault))
        self._answers.hand_in()
        self._output.flush()


def partly_committed() -> AmqpError:
    """Return the answer to a commit of which a queue refused a message."""
    return AmqpError(ReplyCode.PRECONDITION_FAILED, "partial tx completion", Tx.Commit.index)
