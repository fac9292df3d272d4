"""The message property `expiration`: milliseconds as decimal text, checked as RabbitMQ checks it."""

from __future__ import annotations

import re

from gateway.amqp.argument_rules import TIME_MS_MAX
from gateway.amqp.errors import AmqpError
from gateway.amqp.reply_codes import ReplyCode

_INTEGER = re.compile(rb"[+-]?[0-9]+")


def parse_expiration(text: bytes) -> int:
    """Return the milliseconds that `text` says.

    Raises:
        AmqpError: PRECONDITION_FAILED: not a whole number, a negative one, or more than ten years.
    """
    found = _INTEGER.match(text)
    if found is None:
        why = "no_integer"
    elif found.end() < len(text):
        why = f'{{leftover_string,"{text[found.end() :].decode(errors="replace")}"}}'
    else:
        ttl_ms = int(text)
        if 0 <= ttl_ms <= TIME_MS_MAX:
            return ttl_ms
        why = f"{{{'value_negative' if ttl_ms < 0 else 'value_too_large'},{ttl_ms}}}"
    reason = f"invalid expiration '{text.decode(errors='replace')}': {why}"
    raise AmqpError(ReplyCode.PRECONDITION_FAILED, reason)
