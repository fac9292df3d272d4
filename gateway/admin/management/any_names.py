"""AMQP's methods with any names: RabbitMQ takes more letters than pamqp does, and the door sees to what may be."""

from __future__ import annotations

from typing import TypeVar, cast

from pamqp import base
from pamqp.commands import Basic, Connection, Exchange, Queue

Method = TypeVar("Method", bound=base.Frame)


def _with_any_names(kind: type[Method]) -> type[Method]:
    return cast("type[Method]", type(kind.__name__, (kind,), {"validate": lambda _method: None}))


OpenConnection = _with_any_names(Connection.Open)
DeclareQueue = _with_any_names(Queue.Declare)
DeleteQueue = _with_any_names(Queue.Delete)
PurgeQueue = _with_any_names(Queue.Purge)
BindQueue = _with_any_names(Queue.Bind)
UnbindQueue = _with_any_names(Queue.Unbind)
DeclareExchange = _with_any_names(Exchange.Declare)
DeleteExchange = _with_any_names(Exchange.Delete)
BindExchange = _with_any_names(Exchange.Bind)
UnbindExchange = _with_any_names(Exchange.Unbind)
Publish = _with_any_names(Basic.Publish)
Get = _with_any_names(Basic.Get)
Consume = _with_any_names(Basic.Consume)
