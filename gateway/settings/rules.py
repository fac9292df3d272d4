"""The setting `auth.rules`: what is allowed or denied to which users, in one language for all doors."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field, model_validator

from gateway.regex import compile_regex
from gateway.settings.topic_rules import Filter

PATTERN_CHARS_MAX = 1_024  # chosen: an expression takes memory in proportion to it
EXPRESSION = "re:"
TOPIC_ACTIONS = frozenset(("publish", "subscribe"))
NAME_ACTIONS = frozenset(("read", "write", "configure"))
ALL = "all"


def _check_name(text: str) -> str:
    if text.startswith(EXPRESSION):
        compile_regex(text.removeprefix(EXPRESSION))
    return text


def _check_network(text: str) -> str:
    try:
        ipaddress.ip_network(text)
    except ValueError as error:
        raise ValueError(f"must be an address or a network, such as 10.0.0.0/8: {error}") from error
    return text


NamePattern = Annotated[str, Field(max_length=PATTERN_CHARS_MAX), AfterValidator(_check_name)]
Network = Annotated[str, AfterValidator(_check_network)]
Kind = Literal["topic", "group", "cluster"]
Action = Literal["publish", "subscribe", "read", "write", "configure", "all"]


class RuleSettings(BaseModel, frozen=True, extra="forbid"):
    """One rule of `auth.rules`; the first rule that matches a request decides it."""

    permit: Literal["allow", "deny"]  # what the rule decides
    actions: Annotated[tuple[Action, ...], Field(min_length=1)] = ("all",)  # actions that the rule is for
    # the rule is for these users; empty: for all. The empty name stands for anonymous clients
    users: tuple[NamePattern, ...] = ()
    groups: tuple[NamePattern, ...] = ()  # the rule is for users in one of these groups
    clients: tuple[NamePattern, ...] = ()  # MQTT client identifiers
    addresses: tuple[Network, ...] = ()  # networks that the client connects from
    doors: tuple[Literal["mqtt", "amqp", "rocketmq"], ...] = ()  # doors that the client uses; empty: all
    vhosts: tuple[NamePattern, ...] = ()  # virtual hosts of queues and exchanges
    topics: tuple[Filter, ...] = ()  # MQTT filters, with %c and %u
    kinds: tuple[Kind, ...] = ()  # kinds of names that RocketMQ clients use; empty: names of all kinds, at each door
    names: tuple[NamePattern, ...] = ()  # names of queues, exchanges, RocketMQ topics and groups, with %c and %u

    @model_validator(mode="after")
    def _check_objects(self) -> RuleSettings:
        said = set(self.actions)
        if self.topics and not said & {ALL, *TOPIC_ACTIONS}:
            raise ValueError("topics are published and subscribed to: no action of the rule is for them")
        if self.kinds and self.topics:
            raise ValueError("kinds are of names, not of MQTT topics")
        if (self.names or self.kinds) and not said & {ALL, *NAME_ACTIONS}:
            raise ValueError("names are read, written and configured: no action of the rule is for them")
        return self

    def __str__(self) -> str:
        """Return the rule in one line."""
        told = [self.permit, "+".join(self.actions)]
        told += [f"{name}={','.join(value)}" for name, value in self if value and name not in {"permit", "actions"}]
        return " ".join(told)
