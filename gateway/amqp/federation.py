"""Exchanges of type `x-federation-upstream`, which a RabbitMQ that federates an exchange of ours declares here.

RabbitMQ, the downstream, binds such an exchange to ours and a queue to such an exchange, and consumes that queue. Each
server that a message passed has an entry in the header `x-received-from`: by it no message goes round in a circle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from gateway.amqp.errors import AmqpError
from gateway.amqp.field_table import INTEGERS, Field, read_table, skip_value
from gateway.amqp.reply_codes import ReplyCode

FEDERATION_UPSTREAM = "x-federation-upstream"
HOPS_MAX = "x-max-hops"
DOWNSTREAM_NAME = "x-downstream-name"
DOWNSTREAM_VHOST = "x-downstream-vhost"
RECEIVED_FROM = "x-received-from"
_TABLE = 0x46  # `F`, the type of a table
_SIZE_OF_HEAD = 5  # the type and the length of a table in an array


class Downstream(NamedTuple):
    """Where the messages of such an exchange go to.

    Args:
        hops_max: A message goes there that passed fewer servers.
        cluster: The name of that server, None where it does not say.
        vhost: Its virtual host, None where it does not say.
    """

    hops_max: int
    cluster: str | None
    vhost: str | None

    def takes(self, headers: Mapping[str, Field]) -> bool:
        """Return whether a message with these headers goes there: few hops, and it was not there before."""
        passed = headers.get(RECEIVED_FROM)
        if passed is None or passed.kind != "array" or not isinstance(passed.value, bytes):
            return True
        count = 0
        for entry in _entries(passed.value):
            count += 1
            if count >= self.hops_max or self._is(entry):
                return False
        return count < self.hops_max

    def _is(self, entry: Mapping[str, Field]) -> bool:
        if self.cluster is None or self.vhost is None or not {"cluster-name", "vhost"} <= entry.keys():
            return False
        return entry["cluster-name"].text == self.cluster and entry["vhost"].text == self.vhost


def _entries(array: bytes) -> Iterator[Mapping[str, Field]]:
    """Give each value of a checked array: tables as they are, an empty table for any other value."""
    pos = 0
    while pos < len(array):
        end = skip_value(array, pos)
        yield read_table(array, pos + _SIZE_OF_HEAD, end) if array[pos] == _TABLE else {}
        pos = end


def find_downstream(arguments: Mapping[str, Field], kind: str) -> Downstream | None:
    """Return where a new exchange is to lead, None where it is of another type.

    Raises:
        AmqpError: PRECONDITION_FAILED: it does not say how many hops a message may have.
    """
    if kind != FEDERATION_UPSTREAM:
        return None
    said = arguments.get(HOPS_MAX)
    if said is None:
        raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"Argument {HOPS_MAX} missing")
    if said.kind not in INTEGERS or not isinstance(said.value, int):
        raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"Argument {HOPS_MAX} must be of type long")
    return Downstream(said.value, _text(arguments, DOWNSTREAM_NAME), _text(arguments, DOWNSTREAM_VHOST))


def _text(arguments: Mapping[str, Field], name: str) -> str | None:
    found = arguments.get(name)
    return None if found is None else found.text


def told_downstream(downstream: Downstream) -> dict[str, object]:
    """Return the arguments that an exchange was declared with."""
    named = {DOWNSTREAM_NAME: downstream.cluster, DOWNSTREAM_VHOST: downstream.vhost}
    return {HOPS_MAX: downstream.hops_max, **{name: value for name, value in named.items() if value is not None}}
