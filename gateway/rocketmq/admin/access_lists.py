"""Access lists as RocketMQ's tools make them (ACL 2.0): each becomes rules of the data folder, for this door alone.

The entries of a list are asked as official brokers do: those of the kind Custom before those of Default, a name before
a beginning of names, a longer beginning before a shorter one, all names last; of equals the one that denies.

Source: docs/protocols/rocketmq.md, "Users and access lists".
"""

from __future__ import annotations

import json
from functools import partial
from typing import Protocol

from core.broker import Broker
from gateway.auth.authenticator import Authenticator
from gateway.auth.rule_book import RulesError
from gateway.auth.stored_rules import RULES_MAX
from gateway.events import Kind
from gateway.rocketmq.admin.access_schemas import ENTRIES_MAX, AclInfo, Entry, parse
from gateway.rocketmq.admin.access_users import get_administrator
from gateway.rocketmq.admin.works import BODY_BYTES_MAX, AdminPeer, answer_kept
from gateway.rocketmq.errors import CommandRefusedError
from gateway.rocketmq.fields import text_field
from gateway.settings.rules import RuleSettings
from lmq.remoting.commands import Command, answer, encode_json
from lmq.remoting.response_codes import ResponseCode

USER = "User:"
SUBJECT_BYTES_MAX = 230  # with # and a number it is the name of a rule, which has 255 at most
KINDS = ("Custom", "Default")
RIGHTS = {"Pub": "write", "Sub": "read", "Create": "configure", "Update": "configure", "Delete": "configure"}
"""What an action is called in rules; Get and List are for everybody that may come in."""
DOOR = ("rocketmq",)
CLUSTER_NAME = "broker"  # what rights call the broker itself
_SPECIAL = ("*", "?", ":", "%c", "%u")  # in the patterns of rules


class Rows(Protocol):
    """A durable table."""

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, or None."""

    def put(self, key: bytes, value: bytes) -> None:
        """Set the value of a key."""

    def delete(self, key: bytes) -> None:
        """Remove a key, where it is there."""


Entries = dict[str, dict[str, Entry]]
"""Of a list, by kind and resource."""


class AccessLists:
    """Answers 3006 to 3010."""

    def __init__(self, broker: Broker, authenticator: Authenticator, rows: Rows) -> None:
        self._broker = broker
        self._authenticator = authenticator
        self._rows = rows
        self._subjects: list[str] = json.loads(rows.get(b"") or b"[]")

    def create(self, request: Command, peer: AdminPeer) -> None:
        """Make a list, or add to the one that is there."""
        self._change(request, peer, must_be_there=False)

    def update(self, request: Command, peer: AdminPeer) -> None:
        """Add to a list, and replace entries of the same resource."""
        self._change(request, peer, must_be_there=True)

    def delete(self, request: Command, peer: AdminPeer) -> None:
        """Take an entry of a list away, or all of it."""
        actor, subject = get_administrator(peer), _get_subject(request)
        resource = request.ext.get("resource")
        kept = self._read(subject)
        if resource:
            kept.get(request.ext.get("policyType") or KINDS[0], {}).pop(resource, None)
        self._keep(subject, kept if resource else {})
        actor.tell(Kind.RULE_DELETED, name=subject, resource=resource or "")
        self._broker.when_kept(partial(answer_kept, request, peer))

    def get(self, request: Command, peer: AdminPeer) -> Command:
        """Answer with a list, or with no body."""
        get_administrator(peer)
        found = _tell(subject := _get_subject(request), self._read(subject))
        return answer(request, ResponseCode.SUCCESS, body=encode_json(found) if found["policies"] else b"")

    def list(self, request: Command, peer: AdminPeer) -> Command:
        """Answer with the lists whose subject, and entries of them whose resource, has a text in it."""
        get_administrator(peer)
        subject_text = request.ext.get("subjectFilter") or ""
        text = request.ext.get("resourceFilter") or ""
        found, size = [], 0
        for subject in sorted(self._subjects):
            if subject_text not in subject:
                continue
            kept = self._read(subject)
            told = _tell(subject, {kind: {k: v for k, v in of.items() if text in k} for kind, of in kept.items()})
            size += len(self._rows.get(subject.encode()) or b"")
            if told["policies"] and size <= BODY_BYTES_MAX:
                found.append(told)
        return answer(request, ResponseCode.SUCCESS, body=encode_json(found) if found else b"")

    def forget_user(self, name: str) -> None:
        """Delete the list of a user that is deleted."""
        self._keep(USER + name, {})

    def _change(self, request: Command, peer: AdminPeer, *, must_be_there: bool) -> None:
        actor, subject = get_administrator(peer), _get_subject(request)
        name = subject.removeprefix(USER)
        if name not in self._authenticator.stored.users and not self._authenticator.is_of_settings(name):
            raise CommandRefusedError(ResponseCode.NO_PERMISSION, f"The subject of {subject} is not exist.")
        if must_be_there and subject not in self._subjects:
            raise CommandRefusedError(ResponseCode.NO_PERMISSION, f"The acl of {subject} is not exist.")
        kept = self._read(subject)
        for policy in parse(AclInfo, bytes(request.body)).policies:
            kept.setdefault(policy.policyType, {}).update({entry.resource: entry for entry in policy.entries})
        self._broker.check_room()
        self._keep(subject, kept)
        actor.tell(Kind.RULE_SET, name=subject)
        self._broker.when_kept(partial(answer_kept, request, peer))

    def _read(self, subject: str) -> Entries:
        row = self._rows.get(subject.encode())
        return {} if row is None else _entries_of(parse(AclInfo, row))

    def _keep(self, subject: str, kept: Entries) -> None:
        """Write a list down, and have its rules count.

        Raises:
            CommandRefusedError: They cannot; nothing has changed, or they are written down and those before count.
        """
        rules = _make_rules(subject, kept)
        stored = self._authenticator.rules.stored
        if sum(map(len, kept.values())) > ENTRIES_MAX or len(stored) + len(rules) > RULES_MAX:
            raise CommandRefusedError(ResponseCode.SYSTEM_BUSY, "there are too many entries or rules")
        if rules or subject in self._subjects:
            self._note(subject, _tell(subject, kept) if rules else None)
            stored.replace(f"{subject}#", rules)
            try:
                self._authenticator.book.finish()
            except RulesError as error:
                raise CommandRefusedError(ResponseCode.SYSTEM_ERROR, str(error)) from error

    def _note(self, subject: str, told: dict[str, object] | None) -> None:
        others = [one for one in self._subjects if one != subject]
        if told is None:
            self._rows.delete(subject.encode())
        else:
            self._rows.put(subject.encode(), encode_json(told))
        self._subjects = others if told is None else [*others, subject]
        self._rows.put(b"", json.dumps(self._subjects).encode())


def _get_subject(request: Command) -> str:
    subject = text_field(request, "subject")
    if not subject.startswith(USER) or not len(USER) < len(subject.encode()) <= SUBJECT_BYTES_MAX or "#" in subject:
        raise CommandRefusedError(ResponseCode.INVALID_PARAMETER, "the subject is to be User:NAME")
    return subject


def _entries_of(acl: AclInfo) -> Entries:
    found: Entries = {}
    for policy in acl.policies:
        found.setdefault(policy.policyType, {}).update({entry.resource: entry for entry in policy.entries})
    return found


def _tell(subject: str, kept: Entries) -> dict[str, object]:
    """Return a list as tools show it."""
    policies = [
        {"policyType": kind, "entries": [entry.model_dump(exclude_none=True) for entry in kept[kind].values()]}
        for kind in KINDS
        if kept.get(kind)
    ]
    return {"subject": subject, "policies": policies}


def _make_rules(subject: str, kept: Entries) -> list[tuple[str, RuleSettings]]:
    """Return the rules of a list with their names, in the order in which they are to be asked.

    Raises:
        CommandRefusedError: An entry means nothing here.
    """
    said = [entry for kind in KINDS for entry in sorted(kept.get(kind, {}).values(), key=_rank)]
    rules: list[tuple[str, RuleSettings]] = []
    for entry in said:
        rule = _make_rule(subject.removeprefix(USER), entry)
        if rule is not None:
            rules.append((f"{subject}#{len(rules)}", rule))
    return rules


def _rank(entry: Entry) -> tuple[int, int, bool]:
    kind, _, name = entry.resource.partition(":")
    if kind == "*":
        place = 3
    elif name == "*":
        place = 2
    else:
        place = int(name.endswith("*"))
    return place, -len(name), entry.decision == "Allow"


def _make_rule(user: str, entry: Entry) -> RuleSettings | None:
    """Return the rule of an entry; None where it allows what everybody may."""
    actions = ["all"] if "All" in entry.actions else sorted({RIGHTS[one] for one in entry.actions if one in RIGHTS})
    if not actions:
        if entry.decision == "Deny":
            raise CommandRefusedError(ResponseCode.INVALID_PARAMETER, "Get and List cannot be denied here")
        return None
    kind, _, name = entry.resource.partition(":")
    if any(special in name.removesuffix("*") or special in user for special in _SPECIAL):
        remark = f"{entry.resource} or {user} has {', '.join(_SPECIAL)} in it"
        raise CommandRefusedError(ResponseCode.INVALID_PARAMETER, remark)
    names = () if kind == "*" else (CLUSTER_NAME if kind == "Cluster" else name,)
    said: dict[str, object] = {
        "permit": entry.decision.lower(),
        "actions": actions,
        "users": (user,),
        "doors": DOOR,
        "addresses": entry.sourceIps or (),
        "kinds": () if kind == "*" else (kind.lower(),),
        "names": names,
    }
    return parse(RuleSettings, said, entry.resource)
