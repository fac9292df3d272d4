"""Confirms of one connection: each run of publishes has its outcome, and those of a channel are told in its order."""

from __future__ import annotations

from functools import partial

from core.errors import LmqError
from core.metrics import DoorMetrics
from gateway.amqp.answers import Answers
from gateway.amqp.channel import Channel
from gateway.amqp.methods import encode_ack, encode_nack
from gateway.amqp.output import ConnectionOutput

Run = tuple[int, Channel, int, int, tuple[int, ...]]  # ticket, channel, first and last number, those refused


class Confirms:
    """Acknowledges what is stored, all up to a number in one frame, and refuses each number that is lost."""

    __slots__ = ("_answers", "_metrics", "_output", "_runs", "_safe")

    def __init__(self, answers: Answers, output: ConnectionOutput, metrics: DoorMetrics) -> None:
        self._answers = answers
        self._output = output
        self._metrics = metrics
        self._runs: list[Run] = []
        self._safe: dict[Channel, int] = {}  # the last number of each channel, to be told at once

    def add(self, ticket: int, channel: Channel, first: int, refused: tuple[int, ...] = ()) -> None:
        """Note that a channel published the numbers from `first` on; those of `refused` were not taken."""
        self._runs.append((ticket, channel, first, channel.published, refused))

    def hand_in(self) -> None:
        """Have what was noted confirmed when its outcome is known; after each piece of work."""
        if not self._runs:
            return
        runs, self._runs = self._runs, []
        last = runs.pop()
        for run in runs:
            self._answers.when_safe(run[0], partial(self._note, run))
        self._answers.when_safe(last[0], partial(self._tell, last))

    def _note(self, run: Run, error: LmqError | None) -> None:
        """Remember that a run is as safe as the settings say; refuse a lost run, after the safe ones before it."""
        _, channel, first, last, refused = run
        if error is None:
            if refused and self._output.is_open(channel):
                self._put_refused(channel, refused)
            self._safe[channel] = last
            return
        self._put_safe()
        if self._output.is_open(channel):
            self._metrics.refuse("not_stored", last + 1 - first)
            channel.confirmed = last
            for number in range(first, last + 1):
                self._output.put(encode_nack(channel.number, number))

    def _put_refused(self, channel: Channel, refused: tuple[int, ...]) -> None:
        """Refuse numbers, each after all before it were acknowledged."""
        for number in refused:
            self._safe[channel] = number - 1
            self._put_safe()
            channel.confirmed = number
            self._output.put(encode_nack(channel.number, number))

    def _tell(self, run: Run, error: LmqError | None) -> None:
        self._note(run, error)
        self._put_safe()
        self._output.flush()

    def _put_safe(self) -> None:
        safe, self._safe = self._safe, {}
        for channel, number in safe.items():
            if self._output.is_open(channel) and number > channel.confirmed:
                data = encode_ack(channel.number, number, multiple=number > channel.confirmed + 1)
                channel.confirmed = number
                self._output.put(data)
