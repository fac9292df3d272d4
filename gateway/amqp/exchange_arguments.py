"""The arguments of an exchange, and what may lead to what.

What RabbitMQ does not know is passed over, as it does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from gateway.amqp.errors import AmqpError
from gateway.amqp.exchanges import CONSISTENT_HASH, DELAYED, Exchange
from gateway.amqp.federation import DOWNSTREAM_NAME, DOWNSTREAM_VHOST, HOPS_MAX
from gateway.amqp.field_table import Field
from gateway.amqp.queue_arguments import check_same_argument
from gateway.amqp.reply_codes import ReplyCode
from gateway.amqp.traits import HASH_HEADER, HASH_PROPERTY, PROPERTIES, HashedBy

ALTERNATE = "alternate-exchange"
DELAYED_TYPE = "x-delayed-type"
KNOWN = frozenset(
    (ALTERNATE, DELAYED_TYPE, HASH_HEADER, HASH_PROPERTY, HOPS_MAX, DOWNSTREAM_NAME, DOWNSTREAM_VHOST)
)  # what means something for one type of exchange or another


def find_alternate(arguments: Mapping[str, Field], what: str) -> str | None:
    """Return the alternate that a new exchange is to have; `what` says in texts which exchange.

    Raises:
        AmqpError: PRECONDITION_FAILED: it is no text.
    """
    said = arguments.get(ALTERNATE)
    if said is None:
        return None
    if said.text is None:
        raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"invalid type '{said.kind}' for arg '{ALTERNATE}' in {what}")
    return said.text


def find_delayed_type(arguments: Mapping[str, Field], kind: str, kinds: Collection[str]) -> str | None:
    """Return the type that a new exchange that delays is to route like, one of `kinds`; None where it does not delay.

    Raises:
        AmqpError: PRECONDITION_FAILED: it does not say, or there is no such type.
    """
    if kind != DELAYED:
        return None
    said = arguments.get(DELAYED_TYPE)
    if said is None or said.text is None:
        reason = f"Invalid argument, '{DELAYED_TYPE}' must be an existing exchange type"
        raise AmqpError(ReplyCode.PRECONDITION_FAILED, reason)
    if said.text not in kinds:
        raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"unknown exchange type '{said.text}'")
    return said.text


def find_hashed_by(arguments: Mapping[str, Field], kind: str, what: str) -> HashedBy | None:
    """Return what of messages a new exchange is to hash, None where it does not, or by the routing key.

    Raises:
        AmqpError: PRECONDITION_FAILED: it is no text; a property that cannot be hashed; both a header and a property.
    """
    if kind != CONSISTENT_HASH:
        return None
    said = [(name, arguments[name]) for name in (HASH_HEADER, HASH_PROPERTY) if name in arguments]
    if len(said) > 1:
        reason = f"{HASH_HEADER} and {HASH_PROPERTY} are mutually exclusive"
        raise AmqpError(ReplyCode.PRECONDITION_FAILED, reason)
    for name, field in said:
        if field.text is None:
            raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"invalid type '{field.kind}' for arg '{name}' in {what}")
        if name == HASH_PROPERTY and field.text not in PROPERTIES:
            raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"Unsupported property: {field.text}")
        return name, field.text
    return None


def check_exchange_arguments(arguments: Mapping[str, Field], found: Exchange, what: str) -> None:
    """Check that an exchange that is there is declared with the alternate, and as many hops, as it has.

    Raises:
        AmqpError: PRECONDITION_FAILED.
    """
    current = None if found.alternate is None else Field("longstr", found.alternate.encode())
    check_same_argument(ALTERNATE, arguments.get(ALTERNATE), current, what)
    if found.downstream is not None:
        hops = Field("long", found.downstream.hops_max)
        check_same_argument(HOPS_MAX, arguments.get(HOPS_MAX), hops, what)
