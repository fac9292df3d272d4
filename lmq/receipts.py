"""Receipts: what a POP consumer names a message by when it acknowledges it.

The broker says for each queue where the taken messages begin and which they are; the receipt of each is made of that,
unless the message brings its own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

from lmq.errors import SdkError
from lmq.message import Message
from lmq.queues import LIGHT_PREFIX

POP_CK = "POP_CK"
RETRY_PREFIX = "%RETRY%"
NORMAL, RETRY, RETRY_V2 = "0", "1", "2"  # of which topic a message is
PARTS = 8  # of a receipt, as RocketMQ writes it

_Queue = tuple[str, int]
"""A flag of those above, and a queue's number."""


class Receipt(NamedTuple):
    """A receipt's parts."""

    start_offset: int
    pop_ms: int
    invisible_ms: int
    revive_queue: int
    flag: str
    broker_name: str
    queue_id: int
    queue_offset: int

    @property
    def text(self) -> str:
        """As requests carry it."""
        return " ".join(map(str, self))

    def topic(self, topic: str, group: str) -> str:
        """Return the topic that the message is on, of those that the group has for `topic`."""
        if self.flag == NORMAL:
            return topic
        return f"{RETRY_PREFIX}{group}{'_' if self.flag == RETRY else '+'}{topic}"


def parse_receipt(text: str) -> Receipt:
    """Return the parts of a receipt.

    Raises:
        SdkError: It is none.
    """
    parts = text.split(" ")
    if len(parts) < PARTS:
        raise SdkError(f"{text!r} is not a receipt: the message was not received by POP")
    try:
        start, pop_ms, invisible_ms, revive = (int(part) for part in parts[:4])
        return Receipt(start, pop_ms, invisible_ms, revive, parts[4], parts[5], int(parts[6]), int(parts[7]))
    except ValueError as error:
        raise SdkError(f"{text!r} is not a receipt") from error


def add_receipts(messages: list[Message], said: Mapping[str, str]) -> list[Message]:
    """Return the messages of a POP answer with their receipts.

    Args:
        messages: The messages, in their order.
        said: The answer's header fields.

    Raises:
        SdkError: The answer does not say which messages it has.
    """
    try:
        times = [int(said[name]) for name in ("popTime", "invisibleTime", "reviveQid")]
        starts = {queue: offsets[0] for queue, offsets in _read_offsets(said.get("startOffsetInfo", "")).items()}
        given = _read_offsets(said.get("msgOffsetInfo", ""))
        counts = _read_counts(said.get("orderCountInfo", ""))
        return [_with_receipt(message, times, starts, given, counts) for message in messages]
    except (KeyError, ValueError, IndexError) as error:
        raise SdkError(f"the broker's answer cannot be read: {error!r}") from error


def _with_receipt(
    message: Message,
    times: list[int],
    starts: dict[_Queue, int],
    given: dict[_Queue, list[int]],
    counts: dict[tuple[str, str], int],
) -> Message:
    own, attempts = message.properties.get(POP_CK), message.reconsume_times
    if own is None:
        queue = (_flag_of(message.topic), 0 if message.queue.startswith(LIGHT_PREFIX) else message.queue_id)
        offset = message.queue_offset
        if given and offset not in given[queue]:
            raise ValueError(f"message {offset} of {queue}")
        pop_ms, invisible_ms, revive = times
        receipt = Receipt(
            starts.get(queue, offset), pop_ms, invisible_ms, revive, queue[0], message.broker_name, queue[1], offset
        )
        own = receipt.text
        of_queue = counts.get((queue[0], str(queue[1])), attempts)
        attempts = counts.get((queue[0], f"qo{queue[1]}%{offset}"), of_queue)
    return dataclasses.replace(message, receipt=own, reconsume_times=attempts)


def _flag_of(topic: str) -> str:
    if not topic.startswith(RETRY_PREFIX):
        return NORMAL
    return RETRY_V2 if "+" in topic else RETRY


def _read_offsets(text: str) -> dict[_Queue, list[int]]:
    """Return the offsets in texts such as `0 3 120,121;1 0 7`: of which topic, which queue, which of its messages."""
    found: dict[_Queue, list[int]] = {}
    for entry in text.split(";") if text else ():
        flag, queue_id, offsets = entry.split(" ")
        found[flag, int(queue_id)] = [int(offset) for offset in offsets.split(",")]
    return found


def _read_counts(text: str) -> dict[tuple[str, str], int]:
    """Return how often messages were given before, from texts such as `0 qo3%120 2;0 3 2`: of a message, of a queue."""
    found: dict[tuple[str, str], int] = {}
    for entry in text.split(";") if text else ():
        flag, name, count = entry.split(" ")
        found[flag, name] = int(count)
    return found
