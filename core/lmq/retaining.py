"""What a publish does to the retained messages, also where it turns out to be lost."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import partial

from core.engine import Engine, FoundRecord
from core.errors import LmqError
from core.lmq.retained import RetainedMessages
from core.message import FLAG_RETAIN, PublishBatch

LOGGER = logging.getLogger(__name__)
Change = tuple[bytes, int]  # a topic, and the number of the change


class Retaining:
    """Keeps the retained messages as what was published says.

    A message counts from its append on, so that a client that subscribes after it is sent it. Where its batch is lost,
    its topic is again what the newest message that is not lost made it.

    Args:
        engine: Where messages are appended.
        retained: The retained messages.
    """

    def __init__(self, engine: Engine, retained: RetainedMessages) -> None:
        self._engine = engine
        self._retained = retained
        self._next_number = 1
        self._unsure: dict[bytes, dict[int, bytes | None]] = {}  # by topic: what is sure, 0, and what came since

    def catch_up(self) -> None:
        """Take in the retained messages that the log has and the table lacks, because a process was killed."""
        taken = self._engine.replay_uncovered(self._retained.take_in)
        if taken:
            LOGGER.info("took retained messages in from the end of the log count=%d", taken)

    def take_in(self, batch: PublishBatch) -> None:
        """Take in what was appended of a batch."""
        changes: list[Change] = []
        for i in range(batch.appended):
            route = batch.routes[batch.route_index[i]]
            if route is None or not batch.flag[i] & FLAG_RETAIN:
                continue
            topic = batch.topics[batch.route_index[i]]
            is_removed = batch.body_start[i] == batch.body_end[i]
            record = None if is_removed else self._engine.copy_record(batch, i)
            if is_removed or record is not None:
                changes.append(self._change(topic, record))
        if changes:
            self._engine.when_stored(batch.ticket, partial(self._settle, changes))

    def _change(self, topic: bytes, record: bytes | None) -> Change:
        number = self._next_number
        self._next_number += 1
        unsure = self._unsure.get(topic)
        if unsure is None:
            unsure = self._unsure[topic] = {0: self._retained.get(topic)}
        unsure[number] = record
        self._set(topic, record)
        return topic, number

    def _set(self, topic: bytes, record: bytes | None) -> None:
        if record is None:
            self._retained.remove(topic)
        else:
            self._retained.set(topic, record)

    def _settle(self, changes: list[Change], error: LmqError | None) -> None:
        """Forget what was before a change that is stored now, or the change where it is lost."""
        for topic, number in changes:
            unsure = self._unsure.get(topic, {})
            if number not in unsure:
                continue  # a later one is sure already
            if error is None:
                for older in list(_until(unsure, number)):
                    del unsure[older]
            else:
                was_last = next(reversed(unsure)) == number
                del unsure[number]
                if was_last:
                    self._set(topic, unsure[next(reversed(unsure))])
            if len(unsure) == 1:
                del self._unsure[topic]

    def find(self, version: int, then: FoundRecord) -> None:
        """Tell `then` the record of a message that is or was retained, also after it was replaced.

        None where it is nowhere any more; at once or later.
        """
        record = self._retained.find(version)
        if record is None:
            self._engine.find_version(version, then)
        else:
            then(record)


def _until(unsure: dict[int, bytes | None], number: int) -> Iterator[int]:
    """Give the numbers before `number`; they stand in order."""
    for each in unsure:
        if each == number:
            return
        yield each
