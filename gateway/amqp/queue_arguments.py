"""The arguments of a queue: which mean something here, whether they are right, and whether two declarations agree.

Texts and their order are RabbitMQ's.
"""

from __future__ import annotations

from collections.abc import Mapping

from core.queues.terms import REJECT_PUBLISH, REJECT_PUBLISH_DLX, QueueTerms, resolve_terms
from gateway.amqp.errors import AmqpError
from gateway.amqp.field_table import INTEGERS, Field
from gateway.amqp.reply_codes import ReplyCode

EXPIRES = "x-expires"
MESSAGE_TTL = "x-message-ttl"
QUEUE_TYPE = "x-queue-type"
QUEUE_MODE = "x-queue-mode"
DEAD_LETTER_EXCHANGE = "x-dead-letter-exchange"
DEAD_LETTER_KEY = "x-dead-letter-routing-key"
MAX_LENGTH = "x-max-length"
MAX_LENGTH_BYTES = "x-max-length-bytes"
MAX_PRIORITY = "x-max-priority"
OVERFLOW = "x-overflow"
DROP_HEAD = "drop-head"
OVERFLOWS = (DROP_HEAD, REJECT_PUBLISH, REJECT_PUBLISH_DLX)
DELIVERY_LIMIT = "x-delivery-limit"
SINGLE_ACTIVE = "x-single-active-consumer"
LEADER_LOCATOR = "x-queue-leader-locator"
DEAD_LETTER_STRATEGY = "x-dead-letter-strategy"
GROUP_SIZES = ("x-quorum-initial-group-size", "x-quorum-target-group-size")
QUORUM_ONLY = (DELIVERY_LIMIT, DEAD_LETTER_STRATEGY, *GROUP_SIZES)
KEPT = (
    EXPIRES, MESSAGE_TTL, DEAD_LETTER_EXCHANGE, DEAD_LETTER_KEY, MAX_LENGTH, MAX_LENGTH_BYTES, OVERFLOW, QUEUE_TYPE,
    LEADER_LOCATOR, SINGLE_ACTIVE, MAX_PRIORITY, *QUORUM_ONLY,
)  # fmt: skip
CLASSIC = "classic"
QUORUM = "quorum"
TYPES = (CLASSIC, QUORUM)
STRATEGIES = ("at-most-once", "at-least-once")  # it is at least once either way
LOCATORS = ("client-local", "balanced", "random", "least-leaders", "min-masters")  # there is one node
DELIVERIES_OF_QUORUM = 20  # of a message that is given back, where nothing is said; as in RabbitMQ 4
MODES = ("default", "lazy")  # either way messages are on disk
PRIORITY_MAX = 255  # an octet
TIME_MS_MAX = 315_360_000_000  # ten years, RabbitMQ's bound

PREFIX = "x-"

KeptArguments = dict[str, Field]


def find_terms(arguments: KeptArguments) -> QueueTerms:
    """Return what holds for a queue with these arguments, as they are kept."""
    told: dict[str, int | str] = {}
    for name, field in arguments.items():
        value = field.value if field.text is None else field.text
        if isinstance(value, int | str):
            told[name.removeprefix(PREFIX)] = value
    if is_quorum(arguments):
        told.setdefault(DELIVERY_LIMIT.removeprefix(PREFIX), DELIVERIES_OF_QUORUM)
    return resolve_terms(told)


def is_quorum(arguments: Mapping[str, Field]) -> bool:
    """Return whether a queue is one of the type quorum."""
    return QUEUE_TYPE in arguments and arguments[QUEUE_TYPE].text == QUORUM


def check_arguments(arguments: Mapping[str, Field], what: str) -> KeptArguments:
    """Return what a new queue keeps of its arguments; `what` says in texts which queue.

    Raises:
        AmqpError: PRECONDITION_FAILED: an argument is wrong, or not supported.
    """
    _check_choice(arguments, QUEUE_TYPE, TYPES, "type", what)
    if is_quorum(arguments):
        _check_quorum(arguments, what)
    else:
        _refuse_of_type([name for name in QUORUM_ONLY if name in arguments], what, CLASSIC)
        _check_priority(arguments, what)
    _check_choice(arguments, LEADER_LOCATOR, LOCATORS, "leader locator", what)
    for name, least in ((EXPIRES, 1), (MESSAGE_TTL, 0)):
        if name in arguments:
            _check_time(arguments[name], least, f"invalid arg '{name}' for {what}")
    _check_choice(arguments, QUEUE_MODE, MODES, "mode", what)
    _check_dead_letters(arguments, what)
    _check_length(arguments, what)
    single = arguments.get(SINGLE_ACTIVE)
    if single is not None and single.kind != "bool":
        reason = f"invalid arg '{SINGLE_ACTIVE}' for {what}: {{unacceptable_type,{single.kind}}}"
        raise AmqpError(ReplyCode.PRECONDITION_FAILED, reason)
    refuse_arguments([name for name in arguments if name not in {*KEPT, QUEUE_MODE}], what)
    kept = {name: arguments[name] for name in KEPT if name in arguments}
    if not is_quorum(arguments):
        kept.pop(QUEUE_TYPE, None)  # what is not said is classic
    return kept


def check_properties(arguments: Mapping[str, Field], wrong: Mapping[str, bool], what: str) -> None:
    """Check that a queue of the type quorum has none of the properties that it may not have, by their names.

    Raises:
        AmqpError: PRECONDITION_FAILED.
    """
    for name, is_so in wrong.items():
        if is_so and is_quorum(arguments):
            raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"invalid property '{name}' for {what}")


def check_same_arguments(received: Mapping[str, Field], current: Mapping[str, Field], what: str) -> None:
    """Check that a queue that is there is declared with the arguments that it has.

    Raises:
        AmqpError: PRECONDITION_FAILED.
    """
    _check_choice(received, QUEUE_TYPE, TYPES, "type", what)
    _check_choice(received, QUEUE_MODE, MODES, "mode", what)
    if not is_quorum(received):
        received = {name: field for name, field in received.items() if name != QUEUE_TYPE or is_quorum(current)}
    more = [name for name in received if name.startswith("x-") and name not in {*KEPT, QUEUE_MODE}]
    for name in (*KEPT, *more):
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


def refuse_arguments(names: list[str], what: str) -> None:
    """Refuse what is an extension and not supported: it would not do what it says.

    Raises:
        AmqpError: PRECONDITION_FAILED.
    """
    for name in names:
        if name.startswith("x-"):
            raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"invalid arg '{name}' for {what}: not supported")


def inequivalent(name: str, received: str, current: str, what: str) -> AmqpError:
    """Return the answer to a declaration that says something else than what is there."""
    reason = f"inequivalent arg '{name}' for {what}: received {received} but current is {current}"
    return AmqpError(ReplyCode.PRECONDITION_FAILED, reason)


def check_integer(field: Field, start: str) -> int:
    """Return a whole number; `start` begins the text otherwise.

    Raises:
        AmqpError: PRECONDITION_FAILED.
    """
    if field.kind not in INTEGERS or not isinstance(field.value, int):
        raise AmqpError(ReplyCode.PRECONDITION_FAILED, f'{start}: "expected integer, got {field.kind}"')
    return field.value


def _check_time(field: Field, least: int, start: str) -> None:
    time_ms = check_integer(field, start)
    if time_ms > TIME_MS_MAX:
        raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"{start}: {{value_too_large,{time_ms}}}")
    if time_ms < least:
        why = "value_negative" if time_ms < 0 else "value_zero"
        raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"{start}: {{{why},{time_ms}}}")


def _check_length(arguments: Mapping[str, Field], what: str) -> None:
    for name in (MAX_LENGTH, MAX_LENGTH_BYTES):
        if name not in arguments:
            continue
        start = f"invalid arg '{name}' for {what}"
        length = check_integer(arguments[name], start)
        if length < 0:
            raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"{start}: {{value_negative,{length}}}")
    overflow = arguments.get(OVERFLOW)
    if overflow is None or overflow.text in OVERFLOWS:
        return
    why = "invalid_overflow" if overflow.text is not None else f"{{unacceptable_type,{overflow.kind}}}"
    raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"invalid arg '{OVERFLOW}' for {what}: {why}")


def _check_priority(arguments: Mapping[str, Field], what: str) -> None:
    if MAX_PRIORITY in arguments:
        start = f"invalid arg '{MAX_PRIORITY}' for {what}"
        highest = check_integer(arguments[MAX_PRIORITY], start)
        if not 0 <= highest <= PRIORITY_MAX:
            why = "value_negative" if highest < 0 else "max_value_exceeded"
            raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"{start}: {{{why},{highest}}}")


def _check_dead_letters(arguments: Mapping[str, Field], what: str) -> None:
    exchange, key = arguments.get(DEAD_LETTER_EXCHANGE), arguments.get(DEAD_LETTER_KEY)
    if exchange is not None and exchange.text is None:
        of = what.replace("queue", "in queue", 1)
        reason = f"invalid type '{exchange.kind}' for arg '{DEAD_LETTER_EXCHANGE}' {of}"
        raise AmqpError(ReplyCode.PRECONDITION_FAILED, reason)
    if key is not None and (exchange is None or key.text is None):
        why = "routing_key_but_no_dlx_defined" if key.text is not None else f"{{unacceptable_type,{key.kind}}}"
        raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"invalid arg '{DEAD_LETTER_KEY}' for {what}: {why}")


def _check_quorum(arguments: Mapping[str, Field], what: str) -> None:
    _refuse_of_type([name for name in (QUEUE_MODE, MAX_PRIORITY) if name in arguments], what, QUORUM)
    for name, least in ((DELIVERY_LIMIT, -1), *((size, 1) for size in GROUP_SIZES)):
        if name in arguments:
            start = f"invalid arg '{name}' for {what}"
            number = check_integer(arguments[name], start)
            if number < least:
                why = "value_negative" if number < 0 else "value_zero"
                raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"{start}: {{{why},{number}}}")
    _check_choice(arguments, DEAD_LETTER_STRATEGY, STRATEGIES, "dead letter strategy", what)


def _refuse_of_type(names: list[str], what: str, kind: str) -> None:
    """Refuse arguments that mean nothing to queues of a type."""
    for name in names:
        reason = f"invalid arg '{name}' for {what} of queue type rabbit_{kind}_queue"
        raise AmqpError(ReplyCode.PRECONDITION_FAILED, reason)


def _check_choice(arguments: Mapping[str, Field], name: str, choices: tuple[str, ...], noun: str, what: str) -> None:
    field = arguments.get(name)
    if field is None or field.text in choices:
        return
    why = f"{{unacceptable_type,{field.kind}}}"
    if field.text is not None:
        why = f"\"unsupported queue {noun} '{field.text}'\""
    raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"invalid arg '{name}' for {what}: {why}")


def _class_of(field: Field) -> str:
    return "int" if field.kind in INTEGERS else field.kind


def _describe(field: Field | None) -> str:
    return "none" if field is None else f"the value '{_text(field)}' of type '{field.kind}'"


def _text(field: Field) -> str:
    value = field.value
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return str(value).lower()  # as Erlang writes booleans
