"""Where a consumer with `x-stream-offset` begins to read a queue, as RabbitMQ's streams say it.

Source: docs/protocols/amqp.md, "Reading without consuming".
"""

from __future__ import annotations

import re
from typing import NamedTuple

from gateway.amqp.errors import AmqpError
from gateway.amqp.field_table import INTEGERS, Field
from gateway.amqp.reply_codes import ReplyCode

STREAM_OFFSET = "x-stream-offset"
FIRST = "first"
LAST = "last"  # the newest message that is there
NEXT = "next"  # the first that comes
_INTERVAL = re.compile(r"([0-9]{1,9})([YMDhms])")
_UNIT_MS = {"Y": 31_536_000_000, "M": 2_592_000_000, "D": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000}
OFFSET_MAX = (1 << 63) - 1  # a signed number of 64 bits


class Start(NamedTuple):
    """Where to begin: a word, or else an offset, or else a moment; one of the three is set."""

    word: str = ""
    offset: int = -1
    at_ms: int = -1


def parse_start(said: Field, now_ms: int, what: str) -> Start:
    """Return where a consumer begins; `what` says in texts which queue.

    Raises:
        AmqpError: PRECONDITION_FAILED: it says nothing that is known.
    """
    if said.text in {FIRST, LAST, NEXT}:
        return Start(word=said.text or "")
    if said.kind in INTEGERS and isinstance(said.value, int) and 0 <= said.value <= OFFSET_MAX:
        return Start(offset=said.value)
    if said.kind == "timestamp" and isinstance(said.value, int):
        return Start(at_ms=min(said.value * 1_000, OFFSET_MAX))
    found = _INTERVAL.fullmatch(said.text or "")
    if found is not None:
        return Start(at_ms=max(0, now_ms - int(found[1]) * _UNIT_MS[found[2]]))
    shown = said.text if said.text is not None else f"{said.kind} {said.value!r}"
    reason = (
        f"invalid arg '{STREAM_OFFSET}' for {what}: '{shown}' is no first, last, next, offset, timestamp or interval"
    )
    raise AmqpError(ReplyCode.PRECONDITION_FAILED, reason)
