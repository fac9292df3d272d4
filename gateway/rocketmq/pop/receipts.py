"""Receipts of POP as official brokers write them: a consumer gets one with each message, and sends it back.

A message is with its consumer until the moment that pop time and invisible time add up to. That moment is what proves
it: a message that is taken again is hidden until a later one.

Source: docs/protocols/rocketmq.md, "POP".
"""

from __future__ import annotations

from typing import NamedTuple

from gateway.rocketmq.errors import CommandRefusedError
from gateway.rocketmq.fields import DIGITS_MAX
from lmq.remoting.response_codes import ResponseCode

ORDERED_REVIVE_QUEUE = 999  # what clients tell ordered consumption by
PARTS_MIN = 6  # of a receipt that official brokers accept
NORMAL_TOPIC = "0"


class Receipt(NamedTuple):
    """What of a receipt counts."""

    pop_ms: int
    invisible_ms: int
    revive_queue: int

    @property
    def until_ms(self) -> int:
        """The moment until which the message is hidden."""
        return self.pop_ms + self.invisible_ms


def parse_receipt(text: str) -> Receipt:
    """Return the receipt in `extraInfo`.

    Raises:
        CommandRefusedError: It is none.
    """
    parts = text.split(" ")
    if len(parts) < PARTS_MIN:
        raise CommandRefusedError(ResponseCode.SYSTEM_ERROR, f"getBrokerName fail, extraInfoStrs length {len(parts)}")
    try:
        numbers = [int(part) if len(part) <= DIGITS_MAX else -1 for part in parts[1:4]]
    except ValueError:
        numbers = [-1]
    if min(numbers) < 0:
        raise CommandRefusedError(ResponseCode.SYSTEM_ERROR, "the receipt in extraInfo has a part that is not a number")
    return Receipt(*numbers)


def format_receipt(first: int, receipt: Receipt, broker_name: str, queue_id: int, queue_offset: int) -> bytes:
    """Return the receipt of one message; `first` is the first offset of those that were taken with it."""
    numbers = (first, receipt.pop_ms, receipt.invisible_ms, receipt.revive_queue)
    text = f"{' '.join(map(str, numbers))} {NORMAL_TOPIC} {broker_name} {queue_id} {queue_offset}"
    return text.encode()


class Given(NamedTuple):
    """The messages of one queue in an answer, ascending, and how often those were given that had been before."""

    queue_id: int
    offsets: list[int]
    again: dict[int, int]  # offset -> how often before


def describe(given: list[Given], *, is_ordered: bool) -> dict[str, str]:
    """Return the fields that a client makes receipts from; one entry a queue."""
    fields = {
        "startOffsetInfo": ";".join(f"{NORMAL_TOPIC} {one.queue_id} {one.offsets[0]}" for one in given),
        "msgOffsetInfo": ";".join(f"{NORMAL_TOPIC} {one.queue_id} {','.join(map(str, one.offsets))}" for one in given),
    }
    counts = [
        f"{NORMAL_TOPIC} qo{one.queue_id}%{offset} {count}" for one in given for offset, count in one.again.items()
    ]
    if is_ordered and counts:
        fields["orderCountInfo"] = ";".join(counts)
    return fields
