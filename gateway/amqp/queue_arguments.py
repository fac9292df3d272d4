"""The arguments of a queue: which mean something here, whether they are right, and whether two declarations agree.

Texts and their order are RabbitMQ's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from core.queues.terms import QueueTerms, resolve_terms
from gateway.amqp.argument_rules import (
    CLASSIC,
    DEAD_LETTER_EXCHANGE,
    DEAD_LETTER_KEY,
    DELIVERY_LIMIT,
    MAX_AGE,
    QUEUE_MODE,
    QUEUE_TYPE,
    QUORUM,
    RULES,
    STREAM,
    parse_age,
)
from gateway.amqp.errors import AmqpError
from gateway.amqp.field_table import INTEGERS, Field
from gateway.amqp.reply_codes import ReplyCode

DELIVERIES_OF_QUORUM = 20  # of a message that is given back, where nothing is said; as in RabbitMQ 4
PREFIX = "x-"
UNKNOWN_BYTES_MAX = 1_024  # names and values of what is kept though it means nothing: of a million queues a gigabyte
NUMBER_BYTES = 8  # what a number or a flag counts for: 64 bits

KeptArguments = dict[str, Field]
_NOTHING_SAID = resolve_terms({})  # one for all such queues


def find_terms(arguments: KeptArguments, policy: Mapping[str, object] | None = None) -> QueueTerms:
    """Return what holds for a queue with these arguments, as they are kept, and of what policies say together."""
    if not arguments and not policy:
        return _NOTHING_SAID
    told: dict[str, int | str] = {}
    for name, field in arguments.items():
        value = field.value if field.text is None else field.text
        if name in RULES and isinstance(value, int | str):
            told[name.removeprefix(PREFIX)] = value
    if MAX_AGE in arguments:
        told[MAX_AGE.removeprefix(PREFIX)] = parse_age(arguments[MAX_AGE].text or "")
    kind = type_of(arguments)
    ruled: dict[str, int | str] = {}
    for key, said in (policy or {}).items():
        rule = RULES.get(PREFIX + key)
        if rule is not None and kind in rule.types and isinstance(said, int | str):
            ruled[key] = parse_age(str(said)) if PREFIX + key == MAX_AGE else said
    limit = DELIVERY_LIMIT.removeprefix(PREFIX)
    if kind == QUORUM and limit not in ruled:
        told.setdefault(limit, DELIVERIES_OF_QUORUM)
    return resolve_terms(told, ruled)


def type_of(arguments: Mapping[str, Field]) -> str:
    """Return the type of a queue with these arguments."""
    return (arguments[QUEUE_TYPE].text if QUEUE_TYPE in arguments else None) or CLASSIC


def is_quorum(arguments: Mapping[str, Field]) -> bool:
    """Return whether a queue is one of the type quorum."""
    return type_of(arguments) == QUORUM


def is_stream(arguments: Mapping[str, Field]) -> bool:
    """Return whether a queue is one of the type stream."""
    return type_of(arguments) == STREAM


def check_arguments(arguments: Mapping[str, Field], what: str) -> KeptArguments:
    """Return what a new queue keeps of its arguments; `what` says in texts which queue.

    What RabbitMQ does not know is passed over, as it does, and told again where it is small.

    Raises:
        AmqpError: PRECONDITION_FAILED: an argument is wrong, or not for queues of this type.
    """
    _check_one(DEAD_LETTER_EXCHANGE, arguments, what)  # before the type, as RabbitMQ does
    _check_one(QUEUE_TYPE, arguments, what)
    kind = type_of(arguments)
    for name, rule in RULES.items():
        if kind in rule.types:
            _check_one(name, arguments, what)
            if name == DEAD_LETTER_KEY and name in arguments and DEAD_LETTER_EXCHANGE not in arguments:
                reason = f"invalid arg '{DEAD_LETTER_KEY}' for {what}: routing_key_but_no_dlx_defined"
                raise AmqpError(ReplyCode.PRECONDITION_FAILED, reason)
    for name in arguments:
        if name in RULES and kind not in RULES[name].types:
            reason = f"invalid arg '{name}' for {what} of queue type rabbit_{kind}_queue"
            raise AmqpError(ReplyCode.PRECONDITION_FAILED, reason)
    kept = {name: arguments[name] for name in RULES if name in arguments}
    return kept | _find_small({name: field for name, field in arguments.items() if name not in RULES})


def find_unkept(arguments: Mapping[str, Field]) -> Iterable[str]:
    """Return the names of the arguments that a queue with these would not keep."""
    unknown = {name: field for name, field in arguments.items() if name not in RULES}
    return unknown.keys() - _find_small(unknown).keys() if unknown else ()


def _find_small(unknown: Mapping[str, Field]) -> KeptArguments:
    """Return what is kept of arguments that mean nothing here, to be told and exported: texts, numbers and flags."""
    kept: KeptArguments = {}
    room = UNKNOWN_BYTES_MAX
    for name, field in unknown.items():
        is_number = field.kind in INTEGERS or (isinstance(field.value, float) and math.isfinite(field.value))
        if field.text is None and field.kind != "bool" and not is_number:
            continue
        room -= len(name.encode()) + (len(field.value) if isinstance(field.value, bytes) else NUMBER_BYTES)
        if room < 0:
            break
        kept[name] = field
    return kept


def _check_one(name: str, arguments: Mapping[str, Field], what: str) -> None:
    if name in arguments:
        RULES[name].check(arguments[name], f"invalid arg '{name}' for {what}")


def with_queue_type(
    arguments: Mapping[str, Field], default: str, *, durable: bool, exclusive: bool, auto_delete: bool
) -> Mapping[str, Field]:
    """Return the arguments of a queue with the type that its virtual host says, where it says none and may be of it."""
    is_plain = durable and not exclusive and not auto_delete
    if default in {"", CLASSIC} or QUEUE_TYPE in arguments or not is_plain:
        return arguments
    return {**arguments, QUEUE_TYPE: Field("longstr", default.encode())}


def check_properties(arguments: Mapping[str, Field], wrong: Mapping[str, bool], what: str) -> None:
    """Check that a queue has none of the properties that one of its type may not have, by their names.

    Raises:
        AmqpError: PRECONDITION_FAILED.
    """
    for name, is_so in wrong.items():
        if is_so and type_of(arguments) != CLASSIC:
            raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"invalid property '{name}' for {what}")


def check_same_arguments(received: Mapping[str, Field], current: Mapping[str, Field], what: str) -> None:
    """Check that an existing queue is declared with the arguments that it has.

    Raises:
        AmqpError: PRECONDITION_FAILED.
    """
    _check_one(QUEUE_MODE, received, what)
    said_type = received.get(QUEUE_TYPE)
    if (said_type is None or said_type.text == CLASSIC) and type_of(current) == CLASSIC:
        received, current = (
            {name: field for name, field in said.items() if name != QUEUE_TYPE} for said in (received, current)
        )  # what is not said is classic
    kind = type_of(current)
    for name, rule in RULES.items():
        if rule.is_compared and kind in rule.types:  # what means nothing to it may be said of it, as in RabbitMQ
            check_same_argument(name, received.get(name), current.get(name), what)


def check_same_argument(name: str, said: Field | None, is_so: Field | None, what: str) -> None:
    """Check that one argument is declared as it is.

    Raises:
        AmqpError: PRECONDITION_FAILED.
    """
    if said is None or is_so is None:
        if said is not is_so:
            raise inequivalent(name, _describe(said), _describe(is_so), what)
    elif said.value != is_so.value or _class_of(said) != _class_of(is_so):
        raise inequivalent(name, f"'{_text(said)}'", f"'{_text(is_so)}'", what)


def inequivalent(name: str, received: str, current: str, what: str) -> AmqpError:
    """Return the answer to a declaration that says something else than what is there."""
    reason = f"inequivalent arg '{name}' for {what}: received {received} but current is {current}"
    return AmqpError(ReplyCode.PRECONDITION_FAILED, reason)


def _class_of(field: Field) -> str:
    return "int" if field.kind in INTEGERS or field.kind == "timestamp" else field.kind


def _describe(field: Field | None) -> str:
    return "none" if field is None else f"the value '{_text(field)}' of type '{field.kind}'"


def _text(field: Field) -> str:
    value = field.value
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return str(value).lower()  # as Erlang writes booleans
