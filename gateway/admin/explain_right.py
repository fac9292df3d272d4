"""Tells whether a user may do something, and which rule decides. It asks as the doors ask."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Literal, NamedTuple

from core.reserved import OWN_ROOTS, is_bridge_state
from gateway.address import format_address, is_loopback
from gateway.admin.explain import QuestionError, check_topic, is_as_nameless
from gateway.admin.schemas import RightExplanation
from gateway.admin.view import AdminView
from gateway.auth.credentials import GUEST
from gateway.auth.judge import Verdict
from gateway.auth.permissions import Permissions
from gateway.mqtt.errors import MalformedPacketError
from gateway.mqtt.topics import check_topic_filter, plain_filter, split_delayed
from gateway.rocketmq.name_rights import find_decider, may_read, may_write

AMQP, MQTT, ROCKETMQ = "amqp", "mqtt", "rocketmq"
PUBLISH, SUBSCRIBE, READ, WRITE, CONFIGURE, ENTER = "publish", "subscribe", "read", "write", "configure", "enter"
Action = Literal["publish", "subscribe", "read", "write", "configure", "enter"]
WORDS = {
    PUBLISH: "publish to topic '{name}'",
    SUBSCRIBE: "subscribe to filter '{name}'",
    READ: "read '{name}' in vhost '{vhost}'",
    WRITE: "write to '{name}' in vhost '{vhost}'",
    CONFIGURE: "configure '{name}' in vhost '{vhost}'",
    ENTER: "use vhost '{vhost}'",
}


class Right(NamedTuple):
    """What is asked: which user, by which door and from where, may do what with which topic, filter or name."""

    action: str
    name: str
    door: str
    vhost: str = "/"
    user: str = ""  # empty: a client that gives no name
    client: str = ""
    address: str = ""  # empty: none that rules know
    groups: tuple[str, ...] = ()  # of a user that a token or a back end lets in


def explain_right(view: AdminView, asked: Right) -> RightExplanation:
    """Return whether it is allowed, and what decides.

    Raises:
        QuestionError: The question has no answer.
    """
    if not asked.name and asked.action != ENTER:
        raise QuestionError(f"{asked.action} needs a topic, a filter or a name")
    if asked.address:
        try:
            ip_address(asked.address)
        except ValueError as error:
            raise QuestionError(f"{asked.address} is not an address such as 192.0.2.7") from error
    if asked.action == PUBLISH:
        check_topic(asked.name)
        topic = _topic_of(asked)
        if topic.startswith(OWN_ROOTS) and not (asked.door == MQTT and is_bridge_state(topic)):
            raise QuestionError(f"{asked.name} is the gateway's own: clients cannot publish to it")
    if asked.action == SUBSCRIBE:
        _check_filter(asked.name)
    is_nameless = not asked.groups and is_as_nameless(view.authenticator, asked.door, asked.user)
    may = _find_rights(view, asked._replace(user="") if is_nameless else asked)
    called = f"user '{asked.user}'" if asked.user else "a client without a name"
    if is_nameless:
        called = f"a client called '{asked.user}', as any without a name,"
    if may is None:
        more = "; of one that a token or a back end lets in name its groups" if asked.user and not asked.groups else ""
        return _answer(asked, Verdict(is_allowed=False, by=""), f"{called} does not come in by this door{more}")
    found = _ask(may, asked, view.broker.parent_topic)
    what = WORDS[asked.action].format(name=asked.name, vhost=asked.vhost)
    return _answer(asked, found, f"{called} may {'' if found.is_allowed else 'not '}{what} by {found.by}")


def _check_filter(name: str) -> None:
    try:
        check_topic_filter(name.encode())
    except MalformedPacketError as error:
        raise QuestionError(f"{name} is not a filter: {error.reason}") from error


def _find_rights(view: AdminView, asked: Right) -> Permissions | None:
    authenticator, user = view.authenticator, asked.user
    may = authenticator.find_rights(asked.door, user, asked.client, asked.address)
    if may is not None and asked.groups:
        raise QuestionError(f"the groups of user '{user}' are those that are known here: leave them out")
    is_here = not asked.address or is_loopback(format_address(asked.address, 0))
    if may is None and user == GUEST and asked.door == AMQP and is_here:
        may = authenticator.find_member(user, asked.address)
    is_elsewhere = may is None and user and all(user != one.name for one in authenticator.users())
    if is_elsewhere and asked.groups:
        return authenticator.book.make(
            user, client=asked.client, host=asked.address, door=asked.door, groups=asked.groups
        )
    return may


def _ask(may: Permissions, asked: Right, parent: bytes) -> Verdict:
    """Return what decides, by the names that the door has."""
    name, action = asked.name.encode(), asked.action
    if asked.door == ROCKETMQ and action in {READ, WRITE}:
        is_allowed = may_read(may, parent, name) if action == READ else may_write(may, name)
        return Verdict(is_allowed, find_decider(may, action, name) or may.explain(action, name).by)
    if action == SUBSCRIBE:
        return may.explain("bind topic" if asked.door == AMQP else SUBSCRIBE, plain_filter(name))
    return may.explain(action, _topic_of(asked) if action == PUBLISH else name, asked.vhost.encode())


def _topic_of(asked: Right) -> bytes:
    """Return the topic that a publish is judged by: of a delayed one what stands behind the seconds."""
    name = asked.name.encode()
    return split_delayed(name)[1] if asked.door == MQTT else name


def _answer(asked: Right, found: Verdict, verdict: str) -> RightExplanation:
    return RightExplanation(**asked._asdict(), is_allowed=found.is_allowed, by=found.by, verdict=verdict)
