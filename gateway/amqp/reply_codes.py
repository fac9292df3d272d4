"""Reply codes of AMQP 0-9-1, with RabbitMQ's words for them; those of a hard error end the connection."""

from __future__ import annotations

from enum import IntEnum


class ReplyCode(IntEnum):
    """What `channel.close`, `connection.close` and `basic.return` carry."""

    REPLY_SUCCESS = 200
    NO_ROUTE = 312
    CONNECTION_FORCED = 320
    ACCESS_REFUSED = 403
    NOT_FOUND = 404
    RESOURCE_LOCKED = 405
    PRECONDITION_FAILED = 406
    FRAME_ERROR = 501
    SYNTAX_ERROR = 502
    COMMAND_INVALID = 503
    CHANNEL_ERROR = 504
    UNEXPECTED_FRAME = 505
    RESOURCE_ERROR = 506
    NOT_ALLOWED = 530
    NOT_IMPLEMENTED = 540
    INTERNAL_ERROR = 541


SOFT = frozenset(
    (
        ReplyCode.ACCESS_REFUSED,
        ReplyCode.NOT_FOUND,
        ReplyCode.RESOURCE_LOCKED,
        ReplyCode.PRECONDITION_FAILED,
    )
)
"""Codes that cost the offender its channel only."""
