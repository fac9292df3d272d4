"""A draft of what a virtual host is to have as well: each item is checked, and all are made once the last was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

from gateway.amqp.binding_terms import Terms
from gateway.amqp.definition_rows import EXCHANGE, QUEUE
from gateway.amqp.direct_reply import is_reply_name
from gateway.amqp.errors import AmqpError
from gateway.amqp.exchange_arguments import check_exchange_arguments, find_alternate, find_delayed_type, find_hashed_by
from gateway.amqp.exchanges import CONSISTENT_HASH, DEFAULT, KINDS, Exchange, ExchangeTable
from gateway.amqp.federation import find_downstream
from gateway.amqp.field_table import TABLE_DEPTH_MAX, Field, check_value
from gateway.amqp.hash_choice import parse_weight
from gateway.amqp.queue_arguments import (
    KeptArguments,
    check_arguments,
    check_properties,
    check_same_arguments,
    inequivalent,
    with_queue_type,
)
from gateway.amqp.queues import VirtualHost
from gateway.amqp.reply_codes import ReplyCode
from gateway.amqp.table_writer import encode_entries, encode_items

LOOKED_A_STEP = 64  # queues of which it costs less than 0.1 us each to see that they are open
LONGEST = 1 << 63  # a signed number of 64 bits is below
_PLAIN = {type(None): "void", bool: "bool", float: "double"}


class DraftQueue(NamedTuple):
    """A queue that is to be there."""

    durable: bool
    auto_delete: bool
    arguments: KeptArguments


class DraftBinding(NamedTuple):
    """A binding that is to be there; it leads to the exchange or the queue `destination`."""

    source: str
    destination: str
    key: str
    terms: Terms
    leads_to_exchange: bool


class HostDraft:
    """What is to be in one virtual host; exchanges and queues are added before bindings.

    Args:
        name: Of the virtual host.
        vhost: It, None where it is still to be made.
        queue_type: Of queues that say none.
    """

    def __init__(self, name: str, vhost: VirtualHost | None, *, queue_type: str = "") -> None:
        self._name = name
        self._vhost = vhost
        self.queue_type = queue_type
        self._there = _no_exchanges(name) if vhost is None else vhost.exchanges
        self._exchanges: dict[str, Exchange] = {}
        self._queues: dict[str, DraftQueue] = {}
        self._bindings: list[DraftBinding] = []

    def add_exchange(
        self, name: str, kind: str, arguments: Mapping[str, Any], *, durable: bool, auto_delete: bool, internal: bool
    ) -> bool:
        """Ask for an exchange.

        Raises:
            AmqpError: It cannot be, or is there with something that is not the same.
        """
        what = f"exchange '{name}' in vhost '{self._name}'"
        fields = read_arguments(arguments)
        found = self._find_exchange(name)
        if found is not None:
            for part, received, current in (
                ("type", kind, found.kind),
                ("durable", durable, found.is_durable),
                ("auto_delete", auto_delete, found.is_auto_delete),
                ("internal", internal, found.is_internal),
            ):
                _check_same(part, received, current, what)
            check_exchange_arguments(fields, found, what)
            return True
        delayed_type = find_delayed_type(fields, kind, KINDS)
        self._exchanges[name] = Exchange(
            name,
            kind,
            durable=durable,
            auto_delete=auto_delete,
            internal=internal,
            alternate=find_alternate(fields, what),
            hashed_by=find_hashed_by(fields, delayed_type or kind, what),
            delayed_type=delayed_type,
            downstream=find_downstream(fields, delayed_type or kind),
        )
        return True

    def add_queue(self, name: str, arguments: Mapping[str, Any], *, durable: bool, auto_delete: bool) -> bool:
        """Ask for a queue.

        Raises:
            AmqpError: It cannot be, or is there with something that is not the same.
        """
        what = f"queue '{name}' in vhost '{self._name}'"
        if not name or is_reply_name(name):
            raise AmqpError(ReplyCode.PRECONDITION_FAILED, "no queue has such a name")
        fields = with_queue_type(
            read_arguments(arguments), self.queue_type, durable=durable, exclusive=False, auto_delete=auto_delete
        )
        found = None if self._vhost is None else self._vhost.find(name)
        if found is not None:
            _check_same("durable", durable, found.is_durable and found.owner is None, what)
            _check_same("auto_delete", auto_delete, found.is_auto_delete, what)
            check_same_arguments(fields, found.arguments, what)
            return True
        kept = check_arguments(fields, what)
        check_properties(kept, {"auto-delete": auto_delete, "non-durable": not durable}, what)
        self._queues[name] = DraftQueue(durable, auto_delete, kept)
        return True

    def bind_queue(self, source: str, destination: str, key: str, arguments: Mapping[str, Any]) -> bool:
        """Ask for a binding to a queue; return whether its ends are there, or will be.

        Raises:
            AmqpError: It cannot be.
        """
        exchange = self._find_source(source)
        is_there = self._vhost is not None and self._vhost.find(destination) is not None
        if exchange is None or not (is_there or destination in self._queues):
            return False
        terms = _read_terms(exchange, key, arguments)
        self._bindings.append(DraftBinding(source, destination, key, terms, leads_to_exchange=False))
        return True

    def bind_exchange(self, source: str, destination: str, key: str, arguments: Mapping[str, Any]) -> bool:
        """Ask for a binding to an exchange; return whether its ends are there, or will be.

        Raises:
            AmqpError: It cannot be.
        """
        exchange = self._find_source(source)
        if exchange is None or self._find_source(destination) is None:
            return False
        terms = _read_terms(exchange, key, arguments)
        self._bindings.append(DraftBinding(source, destination, key, terms, leads_to_exchange=True))
        return True

    def _find_source(self, name: str) -> Exchange | None:
        if name == DEFAULT:
            raise AmqpError(ReplyCode.ACCESS_REFUSED, "operation not permitted on the default exchange")
        return self._find_exchange(name)

    def _find_exchange(self, name: str) -> Exchange | None:
        """Return an exchange that is to be there, or is: of very many, none is looked at ahead."""
        return self._exchanges.get(name) or self._there.find(name)

    def carry_out(self, vhost: VirtualHost) -> Iterator[None]:
        """Make in a virtual host what is not there yet, in steps; after the last one all of it is written down."""
        made = []
        for name, exchange in self._exchanges.items():
            while (EXCHANGE, name) in vhost.taken:
                yield
            if vhost.exchanges.find(name) is None:
                vhost.add_exchange(exchange)
            yield
        for name, queue in self._queues.items():
            while (QUEUE, name) in vhost.taken:
                yield
            if vhost.find(name) is None:
                added = vhost.add(
                    name,
                    durable=queue.durable,
                    auto_delete=queue.auto_delete,
                    owner=None,
                    arguments=queue.arguments,
                )
                made.append(added)
            yield
        for binding in self._bindings:
            _bind(vhost, binding)
            yield
        for number, one in enumerate(made):  # a queue is written down when it is open, which an engine may tell later
            while not one.is_open and vhost.find(one.name) is one:
                yield
            if number % LOOKED_A_STEP == 0:
                yield

    def let_go(self) -> Iterator[None]:
        """Forget all that was asked for, in steps."""
        while self._queues:
            self._queues.popitem()
            yield
        while self._bindings:
            self._bindings.pop()
            yield


def _bind(vhost: VirtualHost, binding: DraftBinding) -> None:
    """Make a binding, where its ends were not deleted meanwhile."""
    source = vhost.exchanges.find(binding.source)
    if source is None:
        return
    if binding.leads_to_exchange:
        destination = vhost.exchanges.find(binding.destination)
        if destination is not None:
            vhost.bind(source, (destination, binding.key, binding.terms))
    elif vhost.find(binding.destination) is not None:
        vhost.bind(source, (binding.destination, binding.key, binding.terms))


def read_arguments(table: Mapping[str, Any]) -> dict[str, Field]:
    """Return arguments that came as JSON, with the types that RabbitMQ gives them.

    Raises:
        AmqpError: A number is too large.
    """
    return {name: _read_value(name, value) for name, value in table.items()}


def _read_value(name: str, value: object) -> Field:
    if value is None or isinstance(value, bool | float):
        return Field(_PLAIN[type(value)], value)
    if isinstance(value, int):
        if not -LONGEST <= value < LONGEST:
            raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"invalid arg '{name}': {value} is too large")
        return Field("long", value)
    if isinstance(value, str):
        return Field("longstr", value.encode(errors="surrogateescape"))
    is_list = isinstance(value, list)
    try:
        encoded = encode_items(value) if isinstance(value, list) else encode_entries(cast("dict[str, Any]", value))
    except (ValueError, RecursionError) as error:
        raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"invalid arg '{name}': {error}") from error
    whole = (b"A" if is_list else b"F") + len(encoded).to_bytes(4, "big") + encoded
    if check_value(whole, 0, len(whole), 1) < 0:
        reason = f"invalid arg '{name}': more than {TABLE_DEPTH_MAX} tables and arrays are inside each other"
        raise AmqpError(ReplyCode.PRECONDITION_FAILED, reason)
    return Field("array" if is_list else "table", encoded)


def _read_terms(exchange: Exchange, key: str, arguments: Mapping[str, Any]) -> Terms:
    if exchange.rule == CONSISTENT_HASH:
        parse_weight(key)
    return exchange.read_terms(read_arguments(arguments))


def _check_same(name: str, received: object, current: object, what: str) -> None:
    if received != current:
        raise inequivalent(name, f"'{str(received).lower()}'", f"'{str(current).lower()}'", what)


def _no_exchanges(vhost: str) -> ExchangeTable:
    """Return what a virtual host begins with."""
    return ExchangeTable(vhost, _say_nothing, _say_nothing, _nothing_changed, has_topic_space=False)


def _say_nothing(key: str, destination: object) -> None:
    """It leads nowhere yet."""


def _nothing_changed() -> None:
    """It leads nowhere yet."""
