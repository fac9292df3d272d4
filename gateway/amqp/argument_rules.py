"""The arguments of queues that RabbitMQ knows: for which types of queue each is, and what its value may be.

Texts are RabbitMQ's; what it was seen to answer is in `tests/data/rabbitmq-3.10.8/arguments.json`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from core.queues.terms import REJECT_PUBLISH, REJECT_PUBLISH_DLX
from gateway.amqp.errors import AmqpError
from gateway.amqp.field_table import INTEGERS, Field
from gateway.amqp.reply_codes import ReplyCode

CLASSIC = "classic"
QUORUM = "quorum"
STREAM = "stream"
TYPES = (CLASSIC, QUORUM, STREAM)

QUEUE_TYPE = "x-queue-type"
EXPIRES = "x-expires"
MESSAGE_TTL = "x-message-ttl"
DEAD_LETTER_EXCHANGE = "x-dead-letter-exchange"
DEAD_LETTER_KEY = "x-dead-letter-routing-key"
MAX_LENGTH = "x-max-length"
MAX_LENGTH_BYTES = "x-max-length-bytes"
MAX_PRIORITY = "x-max-priority"
OVERFLOW = "x-overflow"
DELIVERY_LIMIT = "x-delivery-limit"
SINGLE_ACTIVE = "x-single-active-consumer"
QUEUE_MODE = "x-queue-mode"
MAX_AGE = "x-max-age"
CONSUMER_TIMEOUT = "x-consumer-timeout"

OVERFLOWS = ("drop-head", REJECT_PUBLISH, REJECT_PUBLISH_DLX)
STRATEGIES = ("at-most-once", "at-least-once")  # it is at least once either way
LOCATORS = ("client-local", "balanced", "random", "least-leaders", "min-masters")  # there is one node
MODES = ("default", "lazy")  # either way messages are on disk
VERSIONS = (1, 2)  # of RabbitMQ's files; what is stored here is the same
PRIORITY_MAX = 255  # an octet
SEGMENT_BYTES_MAX = 3_000_000_000  # RabbitMQ's bound
TIME_MS_MAX = 315_360_000_000  # ten years, RabbitMQ's bound
_AGE = re.compile(r"([0-9]{1,9})([YMDhms])")
_UNIT_MS = {"Y": 31_536_000_000, "M": 2_592_000_000, "D": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000}

Check = Callable[[Field, str], None]


class Rule(NamedTuple):
    """One argument.

    Args:
        types: The types of queue that it is for.
        check: Refuses a value that may not be; told how the text begins.
        is_compared: Whether it has to be the same when the queue is declared again.
    """

    types: tuple[str, ...]
    check: Check
    is_compared: bool = True


def check_integer(field: Field, start: str) -> int:
    """Return a whole number; `start` begins the text otherwise.

    Raises:
        AmqpError: PRECONDITION_FAILED.
    """
    if field.kind not in INTEGERS or not isinstance(field.value, int):
        raise AmqpError(ReplyCode.PRECONDITION_FAILED, f'{start}: "expected integer, got {field.kind}"')
    return field.value


def unacceptable(field: Field, start: str) -> AmqpError:
    """Return the answer to a value of a type that may not be."""
    return AmqpError(ReplyCode.PRECONDITION_FAILED, f"{start}: {{unacceptable_type,{field.kind}}}")


def parse_age(text: str) -> int:
    """Return the milliseconds of an age such as `7D`, -1 where it is none."""
    found = _AGE.fullmatch(text)
    return -1 if found is None else int(found[1]) * _UNIT_MS[found[2]]


def _number(least: int, most: int | None = None, too_much: str = "value_too_large") -> Check:
    """Return the check of a whole number."""

    def check(field: Field, start: str) -> None:
        number = check_integer(field, start)
        if most is not None and number > most:
            raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"{start}: {{{too_much},{number}}}")
        if number < least:
            why = "value_negative" if number < 0 else "value_zero"
            raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"{start}: {{{why},{number}}}")

    return check


def _choice(choices: tuple[str, ...], noun: str) -> Check:
    """Return the check of a text that is one of some; `noun` says what it chooses."""

    def check(field: Field, start: str) -> None:
        if field.text is None:
            raise unacceptable(field, start)
        if field.text not in choices:
            raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"{start}: \"unsupported queue {noun} '{field.text}'\"")

    return check


def _check_overflow(field: Field, start: str) -> None:
    if field.text is None:
        raise unacceptable(field, start)
    if field.text not in OVERFLOWS:
        raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"{start}: invalid_overflow")


def _check_locator(field: Field, start: str) -> None:
    _check_text(field, start)
    if field.text not in LOCATORS:
        raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"{start}: invalid_queue_locator_arg")


def _check_strategy(field: Field, start: str) -> None:
    _check_text(field, start)
    if field.text not in STRATEGIES:
        raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"{start}: invalid_dlx_strategy")


def _check_flag(field: Field, start: str) -> None:
    if field.kind != "bool":
        raise unacceptable(field, start)


def _check_exchange(field: Field, start: str) -> None:
    if field.text is None:
        of = start.partition(" for ")[2].replace("queue", "in queue", 1)
        reason = f"invalid type '{field.kind}' for arg '{DEAD_LETTER_EXCHANGE}' {of}"
        raise AmqpError(ReplyCode.PRECONDITION_FAILED, reason)


def _check_text(field: Field, start: str) -> None:
    if field.text is None:
        raise unacceptable(field, start)


def _check_age(field: Field, start: str) -> None:
    if field.text is None:
        raise unacceptable(field, start)
    if parse_age(field.text) < 0:
        raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"{start}: invalid_max_age")


def _check_segment(field: Field, start: str) -> None:
    _number(0)(field, start)
    if isinstance(field.value, int) and field.value > SEGMENT_BYTES_MAX:
        reason = "Exceeded max value for x-stream-max-segment-size-bytes"
        raise AmqpError(ReplyCode.PRECONDITION_FAILED, reason)


def _check_version(field: Field, start: str) -> None:
    _number(0)(field, start)
    version = check_integer(field, start)
    if version not in VERSIONS:
        raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"{start}: \"unsupported queue version '{version}'\"")


_SHARED = (CLASSIC, QUORUM)
RULES = {
    EXPIRES: Rule(_SHARED, _number(1, TIME_MS_MAX)),
    MESSAGE_TTL: Rule(_SHARED, _number(0, TIME_MS_MAX)),
    DEAD_LETTER_EXCHANGE: Rule(_SHARED, _check_exchange),
    DEAD_LETTER_KEY: Rule(_SHARED, _check_text),
    "x-dead-letter-strategy": Rule((QUORUM,), _check_strategy),
    MAX_LENGTH: Rule(_SHARED, _number(0)),
    MAX_LENGTH_BYTES: Rule(TYPES, _number(0)),
    "x-max-in-memory-length": Rule((QUORUM,), _number(0)),  # messages are on disk
    "x-max-in-memory-bytes": Rule((QUORUM,), _number(0)),
    MAX_PRIORITY: Rule((CLASSIC,), _number(0, PRIORITY_MAX, "max_value_exceeded")),
    OVERFLOW: Rule(_SHARED, _check_overflow),
    QUEUE_MODE: Rule((CLASSIC,), _choice(MODES, "mode"), is_compared=False),
    "x-queue-version": Rule((CLASSIC,), _check_version),
    SINGLE_ACTIVE: Rule(_SHARED, _check_flag),
    QUEUE_TYPE: Rule(TYPES, _choice(TYPES, "type")),
    "x-queue-leader-locator": Rule(TYPES, _check_locator),
    "x-queue-master-locator": Rule((CLASSIC,), _check_text),
    DELIVERY_LIMIT: Rule((QUORUM,), _number(-1)),
    "x-quorum-initial-group-size": Rule((QUORUM,), _number(1)),
    "x-quorum-target-group-size": Rule((QUORUM,), _number(1)),
    "x-initial-cluster-size": Rule((STREAM,), _number(1)),
    MAX_AGE: Rule((STREAM,), _check_age),
    "x-stream-max-segment-size-bytes": Rule((STREAM,), _check_segment),
    "x-stream-filter-size-bytes": Rule((STREAM,), _number(0)),
    CONSUMER_TIMEOUT: Rule(TYPES, _number(0)),
}
"""By name, in the order in which they are compared."""
