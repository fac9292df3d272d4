"""The message property `expiration`: milliseconds as decimal text, checked as RabbitMQ checks it."""

from __future__ import annotations

import re

from core.properties import TTL_MS_MAX
from gateway.amqp.errors import AmqpError
from gateway.amqp.reply_codes import ReplyCode

_INTEGER = re.compile(rb"[+-]?[0-9]+")


def parse_expiration(text: bytes) -> int:
    """Return the milliseconds that `text` says, at most `TTL_MS_MAX`.

    Raises:
        AmqpError: PRECONDITION_FAILED: not a whole number, or a negative one.
    """
    found = _INTEGER.match(text)
    if found is None:
        why = "no_integer"
    elif found.end() < len(text):
        why = f'{{leftover_string,"{text[found.end() :].decode(errors="replace")}"}}'
    else:
        ttl_ms = int(text)
        if ttl_ms >= 0:
            return min(ttl_ms, TTL_MS_MAX)
        why = f"{{value_negative,{ttl_ms}}}"
    reason = f"invalid expiration '{text.decode(errors='replace')}': {why}"
    raise AmqpError(ReplyCode.PRECONDITION_FAILED, reason)
