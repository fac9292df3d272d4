"""What a shared queue is told, by its declaration and by policies of many queues, as one value.

Names are those of RabbitMQ's policies: its arguments without `x-`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

EXPIRES = "expires"
MESSAGE_TTL = "message-ttl"
MAX_LENGTH = "max-length"
MAX_LENGTH_BYTES = "max-length-bytes"
MAX_PRIORITY = "max-priority"
MAX_AGE = "max-age"
CONSUMER_TIMEOUT = "consumer-timeout"
OVERFLOW = "overflow"
REJECT_PUBLISH = "reject-publish"
REJECT_PUBLISH_DLX = "reject-publish-dlx"
DEAD_LETTER_EXCHANGE = "dead-letter-exchange"
DEAD_LETTER_KEY = "dead-letter-routing-key"
DELIVERY_LIMIT = "delivery-limit"
SINGLE_ACTIVE = "single-active-consumer"
NO_LIMIT = -1  # no argument or policy can say it: all that is said is 0 or more

Told = Mapping[str, int | str]
"""What one source says of a queue, by name."""


class QueueTerms(NamedTuple):
    """What holds for a queue; `NO_LIMIT` where nothing was said.

    Args:
        message_ttl_ms: How long messages live in it at most.
        unused_ms: How long it stays when nobody uses it.
        dead_letter_exchange: The exchange that rejected, expired and surplus messages go to; None: nowhere.
        dead_letter_key: By which routing key; None: by their own.
        length_max: How many messages it holds besides those that consumers have.
        is_refusing: Whether it takes no more then; else the oldest go.
        buries_refused: Whether that becomes dead letters.
        delivery_limit: How often a message may be given back and shown again.
        is_single_active: Whether one consumer at a time has its messages.
        bytes_max: How many bytes the bodies of what nobody has have at most.
        priority_max: The highest of its levels; 0: it has one.
        age_max_ms: How long a stream keeps its messages at least.
        consumer_timeout_ms: How long its consumers may leave a message unacknowledged; 0: for ever.
    """

    message_ttl_ms: int = NO_LIMIT
    unused_ms: int = NO_LIMIT
    dead_letter_exchange: str | None = None
    dead_letter_key: str | None = None
    length_max: int = NO_LIMIT
    is_refusing: bool = False
    buries_refused: bool = False
    delivery_limit: int = NO_LIMIT
    is_single_active: bool = False
    bytes_max: int = NO_LIMIT
    priority_max: int = 0
    age_max_ms: int = NO_LIMIT
    consumer_timeout_ms: int = NO_LIMIT

    @property
    def has_length(self) -> bool:
        """Whether it holds so much and no more."""
        return self.length_max >= 0 or self.bytes_max >= 0


def resolve_terms(*told: Told) -> QueueTerms:
    """Return what holds for a queue of which these sources speak: of numbers the stricter, of texts the first."""
    exchange, overflow = _first(told, DEAD_LETTER_EXCHANGE), _first(told, OVERFLOW)
    return QueueTerms(
        _least(told, MESSAGE_TTL),
        _least(told, EXPIRES),
        exchange,
        _first(told, DEAD_LETTER_KEY),
        _least(told, MAX_LENGTH),
        overflow in {REJECT_PUBLISH, REJECT_PUBLISH_DLX},
        overflow == REJECT_PUBLISH_DLX and exchange is not None,
        _stricter(told, DELIVERY_LIMIT),
        any(one.get(SINGLE_ACTIVE) is True for one in told),
        _least(told, MAX_LENGTH_BYTES),
        max(_least(told, MAX_PRIORITY), 0),
        _least(told, MAX_AGE),
        _least(told, CONSUMER_TIMEOUT),
    )


def _least(told: tuple[Told, ...], name: str) -> int:
    found = [value for value in (one.get(name) for one in told) if isinstance(value, int)]
    return min(found, default=NO_LIMIT)


def stricter(one: int, other: int) -> int:
    """Return the stricter of two limits, of which a negative one is none."""
    return max(one, other) if one < 0 or other < 0 else min(one, other)


def _stricter(told: tuple[Told, ...], name: str) -> int:
    found = NO_LIMIT
    for one in told:
        value = one.get(name)
        found = stricter(found, value) if isinstance(value, int) else found
    return found


def _first(told: tuple[Told, ...], name: str) -> str | None:
    found = [value for value in (one.get(name) for one in told) if isinstance(value, str)]
    return found[0] if found else None
