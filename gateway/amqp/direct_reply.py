"""Direct reply-to: answers to a client that declares no queue for them.

A client consumes from `amq.rabbitmq.reply-to` and names that as `reply_to` of what it asks. The gateway gives the
channel a queue that ends with it, under a name that cannot be guessed, and says that name instead. Answers are
published to it by the default exchange, and are in the log as any message is.

Source: docs/protocols/amqp.md, "Direct reply-to".
"""

from __future__ import annotations

import secrets

from gateway.amqp.errors import AmqpError
from gateway.amqp.reply_codes import ReplyCode

REPLY_TO = "amq.rabbitmq.reply-to"
REPLY_TO_BYTES = REPLY_TO.encode()
_NAME_START = f"{REPLY_TO}."


def is_reply_name(queue: str) -> bool:
    """Return whether a queue's name is the common one, or one that a channel was given."""
    return queue == REPLY_TO or queue.startswith(_NAME_START)


def make_reply_name() -> str:
    """Return a name for one channel's answers."""
    return _NAME_START + secrets.token_urlsafe(18)


def name_reply(block: bytes, start: int, name: str) -> bytes:
    """Return a property block whose `reply_to`, a short text at `start`, is the common name, with a channel's instead.

    Raises:
        AmqpError: PRECONDITION_FAILED: the channel does not consume its answers.
    """
    if not name:
        raise AmqpError(ReplyCode.PRECONDITION_FAILED, "fast reply consumer does not exist")
    encoded = name.encode()
    return block[:start] + bytes((len(encoded),)) + encoded + block[start + 1 + len(REPLY_TO_BYTES) :]
