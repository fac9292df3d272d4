"""The arguments of an exchange, and what may lead to what."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.amqp.errors import AmqpError
from gateway.amqp.exchanges import AMQ_TOPIC, HEADERS, Exchange, ExchangeTable
from gateway.amqp.field_table import Field
from gateway.amqp.queue_arguments import check_same_argument, refuse_arguments
from gateway.amqp.reply_codes import ReplyCode
from gateway.amqp.routing import reaches

ALTERNATE = "alternate-exchange"


def find_alternate(arguments: Mapping[str, Field], what: str) -> str | None:
    """Return the alternate that a new exchange is to have; `what` says in texts which exchange.

    Raises:
        AmqpError: PRECONDITION_FAILED: it is no text; an argument is not supported.
    """
    refuse_arguments(list(arguments), what)
    said = arguments.get(ALTERNATE)
    if said is None:
        return None
    if said.text is None:
        raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"invalid type '{said.kind}' for arg '{ALTERNATE}' in {what}")
    return said.text


def check_alternate(arguments: Mapping[str, Field], found: Exchange, what: str) -> None:
    """Check that an exchange that is there is declared with the alternate that it has.

    Raises:
        AmqpError: PRECONDITION_FAILED.
    """
    current = None if found.alternate is None else Field("longstr", found.alternate.encode())
    check_same_argument(ALTERNATE, arguments.get(ALTERNATE), current, what)
    refuse_arguments(list(arguments), what)


def check_no_headers_behind(table: ExchangeTable, source: Exchange, destination: Exchange) -> None:
    """Check that a new binding does not lead from `amq.topic` to a headers exchange.

    What devices publish has its way by its topic alone; headers could send each message another way.

    Raises:
        AmqpError: NOT_IMPLEMENTED.
    """
    topic_space = table.get(AMQ_TOPIC)
    if reaches(table, topic_space, lambda one: one is source) and reaches(
        table, destination, lambda one: one.kind == HEADERS
    ):
        reason = f"a binding that leads from exchange '{AMQ_TOPIC}' to one of type '{HEADERS}' is not supported"
        raise AmqpError(ReplyCode.NOT_IMPLEMENTED, reason)
