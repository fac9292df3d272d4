"""When sends are answered: once their messages are safe and the topics that were made for them are written down."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from core.broker import Broker
from core.errors import LmqError
from core.metrics import DoorMetrics
from gateway.rocketmq.errors import response_code_of
from gateway.rocketmq.lost_sends import refuse_answers
from gateway.rocketmq.send_run import SendRun
from gateway.rocketmq.topic_table import TopicTable

Write = Callable[[bytes], None]


class SendAnswers:
    """Writes answers that were encoded at the append, or lets them be encoded when the offsets are known."""

    def __init__(self, broker: Broker, topics: TopicTable, metrics: DoorMetrics) -> None:
        self._broker = broker
        self._topics = topics
        self._metrics = metrics
        self._kept_count = 0  # of the topics that were made, so many are written down for certain

    def write_when_safe(self, write: Write, data: bytes, ticket: int) -> None:
        """Answer when the messages of a batch are safe, and the topics that were made for them are written down.

        Where they are lost, each answer of `data` that says success says so instead.
        """
        if data:
            self._broker.when_stored(ticket, partial(self._settle, write, data, self._note_made()))

    def write_when_placed(
        self, write: Write, run: SendRun, ticket: int, encode: Callable[[LmqError | None], bytes]
    ) -> None:
        """Answer as `write_when_safe`, with what `encode` makes of the outcome, when the run's offsets are known.

        The run is held until then.
        """
        run.hold()
        self._note_made()
        self._broker.when_stored(ticket, partial(self._place, write, run, ticket, encode))

    def _note_made(self) -> int:
        made_count = self._topics.made_count
        if made_count > self._kept_count:
            self._broker.when_kept(partial(self._note_kept, made_count))
        return made_count

    def _note_kept(self, made_count: int, error: LmqError | None) -> None:
        if error is None:
            self._kept_count = max(self._kept_count, made_count)

    def _place(
        self,
        write: Write,
        run: SendRun,
        ticket: int,
        encode: Callable[[LmqError | None], bytes],
        error: LmqError | None,
    ) -> None:
        if error is None:
            self._broker.engine.tell_places(ticket, run.batch)
        data = encode(error)
        run.release()
        if data:
            self._settle(write, data, self._note_made(), None)

    def _settle(self, write: Write, data: bytes, made_count: int, error: LmqError | None) -> None:
        if error is None and made_count > self._kept_count:
            self._broker.when_kept(partial(self._settle_kept, write, data))
        else:
            self._settle_kept(write, data, error)

    def _settle_kept(self, write: Write, data: bytes, error: LmqError | None) -> None:
        if error is not None:
            count, data = refuse_answers(data, response_code_of(error), str(error))
            self._metrics.refuse("not_stored", count)
        write(data)
