"""Messages that a group was given by POP as often as it wants: they go to its dead letters.

The dead letter is in the log, as safe as the settings say, before the message is done. A process that is killed between
the two stores it again, and nothing is lost.

Source: docs/protocols/rocketmq.md, "POP".
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

from core.broker import Broker
from core.errors import LmqError
from gateway.rocketmq.errors import CommandRefusedError
from gateway.rocketmq.group_table import GroupTable
from gateway.rocketmq.pop.again import attempts_of
from gateway.rocketmq.pop.claims import Taken
from gateway.rocketmq.pop.room import Room
from gateway.rocketmq.send_back import SendBack

STORING_MS = 60_000  # a dead letter that is not stored by then is made anew


class Spent(NamedTuple):
    """A message that was taken once more, perhaps once too often."""

    room: Room
    queue_id: int
    taken: Taken
    record: bytes
    queue_offset: int
    times_before: int
    until_ms: int  # it is hidden until then


class DeadLetters:
    """Stores dead letters of all groups.

    Args:
        broker: Says when they are stored.
        groups: Say how often they want a message.
        backs: Makes the copies.
    """

    def __init__(self, broker: Broker, groups: GroupTable, backs: SendBack) -> None:
        self._broker = broker
        self._groups = groups
        self._backs = backs

    def take_in(self, spent: Spent, now_ms: int) -> bool:
        """Let a message go on as a dead letter, and return True, where it was given too often.

        Where it cannot be stored now, it stays hidden for its time, and is tried again then.
        """
        limit = max(self._groups.get(spent.room.group).retryMaxTimes, 0)
        if attempts_of(spent.record) + spent.times_before <= limit:
            return False
        try:
            ticket = self._backs.bury(spent.record, spent.room.group, spent.times_before - 1, now_ms)
        except (CommandRefusedError, LmqError):
            return True

        until_ms = now_ms + STORING_MS
        spent.taken.change_invisible(spent.queue_offset, spent.until_ms, until_ms)

        def finish(error: LmqError | None) -> None:
            if error is None:
                spent.taken.ack_taken(array("q", [spent.queue_offset]), 1, until_ms)
                spent.room.tell_settled(spent.queue_id)

        self._broker.when_stored(ticket, finish)
        return True
