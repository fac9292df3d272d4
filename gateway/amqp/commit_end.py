"""The end of a commit: what was published is stored, or could not be."""

from __future__ import annotations

from functools import partial

from pamqp.commands import Tx

from core.errors import LmqError
from gateway.amqp.answers import Answers
from gateway.amqp.channel import Channel
from gateway.amqp.consuming import Reading
from gateway.amqp.output import ConnectionOutput


class CommitEnd:
    """What is left to do for a transaction once its messages are stored.

    Args:
        reading: Settles what the transaction settled.
        answers, output: Of the connection.
    """

    def __init__(self, reading: Reading, answers: Answers, output: ConnectionOutput) -> None:
        self._reading = reading
        self._answers = answers
        self._output = output

    def wait(self, channel: Channel, ticket: int, settled: dict[int, int], now_ms: int) -> None:
        """Finish the commit once what has the ticket is stored, 0: nothing was published."""
        then = partial(self._finish, channel, settled, now_ms)
        if ticket:
            self._answers.when_safe(ticket, then)
        else:
            then(None)

    def _finish(self, channel: Channel, settled: dict[int, int], now_ms: int, error: LmqError | None) -> None:
        channel.transaction.is_committing = False
        if error is not None:
            self._output.fail(error)
        if not self._output.is_open(channel):
            return
        self._reading.settle_held(channel, settled, now_ms)
        self._answers.give(channel, Tx.CommitOk())
        self._answers.hand_in()
        self._output.flush()
