"""What a file of definitions asks for, checked as a whole before anything is changed, then made.

Making it is idempotent: what is there is left as it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, Field as Bounded, ValidationError

from gateway.admin.management.declared import Table, as_table
from gateway.admin.management.names import OPERATOR_POLICY
from gateway.amqp.argument_rules import CLASSIC, QUEUE_TYPE, TYPES
from gateway.amqp.definition_draft import HostDraft, read_arguments
from gateway.amqp.errors import AmqpError
from gateway.amqp.exchange_arguments import KNOWN
from gateway.amqp.exchanges import DELAYED, KINDS
from gateway.amqp.host_profile import LIMITS, HostProfile
from gateway.amqp.policies import ALL, InvalidPolicyError, Policy, check_policy
from gateway.amqp.queue_arguments import find_unkept
from gateway.amqp.virtual_hosts import VirtualHosts
from gateway.auth.user_quotas import find_fault
from gateway.plain_errors import tell_wrong
from gateway.settings.models import VHOST_BYTES_MAX

PROBLEMS_MAX = 100  # told of one file; chosen: nobody mends more of them before the next try
OF_ALL = "a file of one virtual host has none"
NO_HOME = {
    "users": OF_ALL,
    "permissions": OF_ALL,
    "topic_permissions": OF_ALL,
    "global_parameters": "it has no meaning here",
}
"""Sections of which nothing is imported, and why."""
QUEUE_TYPES = {
    "undefined": "",
    CLASSIC: "",
    "rabbit_classic_queue": "",
    **{name: kind for kind in TYPES if kind != CLASSIC for name in (kind, f"rabbit_{kind}_queue")},
}
"""Default types of queues as files name them; empty: classic."""
KINDS_OF = {
    "users": "user",
    "permissions": "permissions of user",
    "topic_permissions": "topic permissions of user",
    "parameters": "parameter",
    "global_parameters": "global parameter",
}
Name = Annotated[str, Bounded(max_length=255)]
Said = TypeVar("Said", bound=BaseModel)


def _split(value: object) -> object:
    return [tag.strip() for tag in value.split(",") if tag.strip()] if isinstance(value, str) else value


class SaidMetadata(BaseModel):
    """What is said of a virtual host, inside or beside."""

    description: str = ""
    tags: Annotated[list[str], BeforeValidator(_split)] = []
    default_queue_type: str | None = None
    protected_from_deletion: bool = False


class SaidVhost(SaidMetadata):
    """A virtual host."""

    name: Annotated[str, Bounded(min_length=1, max_length=VHOST_BYTES_MAX)]
    metadata: SaidMetadata = SaidMetadata()
    limits: Annotated[dict[str, Any], BeforeValidator(as_table)] = {}


class SaidParameter(BaseModel):
    """A parameter: some part's name and value in a virtual host."""

    component: str
    name: str
    vhost: Name
    value: Any = None


class SaidQueue(BaseModel):
    """A queue."""

    name: Name
    vhost: Name
    durable: bool = True
    auto_delete: bool = False
    type: str | None = None
    arguments: Table = {}


class SaidExchange(BaseModel):
    """An exchange."""

    name: Name
    vhost: Name
    type: str = "direct"
    durable: bool = True
    auto_delete: bool = False
    internal: bool = False
    arguments: Table = {}


class SaidBinding(BaseModel):
    """A binding."""

    source: Name
    vhost: Name
    destination: Name
    destination_type: Literal["queue", "exchange"] = "queue"
    routing_key: Name = ""
    arguments: Table = {}


class SaidPolicy(BaseModel):
    """A policy."""

    name: Name
    vhost: Name
    pattern: str
    definition: Annotated[dict[str, Any], BeforeValidator(as_table)]
    priority: int = 0
    apply_to: Annotated[str, Bounded(alias="apply-to")] = ALL


class DefinitionsError(Exception):
    """A file that cannot be imported; nothing was changed."""

    def __init__(self, problems: list[str]) -> None:
        shown = "; ".join(problems[:PROBLEMS_MAX])
        super().__init__(shown if len(problems) <= PROBLEMS_MAX else f"{shown}; and more")


class Plan:
    """What is to be imported.

    Args:
        vhosts: Where it goes.
        only: The virtual host that the file is for, None where each item names its own.
    """

    def __init__(self, vhosts: VirtualHosts, only: str | None = None) -> None:
        self.left_out: list[str] = []  # what is not imported, and why
        self.counts: dict[str, int] = {}
        self._vhosts = vhosts
        self._only = only
        self._profiles: dict[str, HostProfile] = {}
        self._drafts: dict[str, HostDraft] = {}
        self._policies: list[Policy] = []
        self._problems: list[str] = []

    def check(self, sections: Mapping[str, list[object]]) -> Iterator[None]:
        """Look at all of a file, in steps.

        Raises:
            DefinitionsError: Something in it is not well formed, is missing, or differs from what is there.
        """
        takers: dict[str, Callable[[object], None]] = {
            "vhosts": self._take_vhost,
            "parameters": self._take_parameter,
            "policies": self._take_policy,
            "exchanges": self._take_exchange,
            "queues": self._take_queue,
            "bindings": self._take_binding,
        }
        for section, take in takers.items():  # in the order in which one needs the other
            for item in sections.get(section, []):
                take(item)
                yield
        for section, items in sections.items():
            if section in takers:
                continue
            for item in items:
                self._leave_out(section, item)
                yield
        if self._problems:
            raise DefinitionsError(self._problems)

    def knows_vhost(self, name: str) -> bool:
        """Return whether a virtual host is there, or will be, after `check`."""
        return name in self._profiles or self._vhosts.find(name) is not None

    def carry_out(self) -> Iterator[None]:
        """Make what is not there yet, in steps."""
        for name, profile in self._profiles.items():
            self._vhosts.make(name, profile)
            yield
        for policy in self._policies:
            self._vhosts.put_policy(policy)
            yield
        for name, draft in self._drafts.items():
            yield from draft.carry_out(self._vhosts.make(name))

    def let_go(self) -> Iterator[None]:
        """Forget what is to be imported, in steps, when it was made or will not be."""
        for draft in self._drafts.values():
            yield from draft.let_go()

    def _take_vhost(self, item: object) -> None:
        said = self._read(SaidVhost, "vhost", item)
        if said is None:
            return
        if self._only is not None:
            self.left_out.append(f"vhost '{said.name}': the file is imported into vhost '{self._only}'")
            return
        found = self._vhosts.find(said.name)
        before = HostProfile() if found is None else found.profile
        description = said.description or said.metadata.description or before.description
        tags = tuple(said.tags or said.metadata.tags) or before.tags
        kind = said.default_queue_type or said.metadata.default_queue_type
        if said.protected_from_deletion or said.metadata.protected_from_deletion:
            self.left_out.append(f"protection from deletion of vhost '{said.name}': there is none here")
        if kind and kind not in QUEUE_TYPES:
            self.left_out.append(f"default queue type '{kind}' of vhost '{said.name}': there is none of that name here")
            kind = None
        queue_type = QUEUE_TYPES[kind] if kind else before.queue_type
        self._profiles[said.name] = before._replace(description=description, tags=tags, queue_type=queue_type)
        self._take_limits(said.name, said.limits)
        if not self._vhosts.is_going(said.name):
            self._count("vhosts")
        else:
            self._problem(f"vhost '{said.name}' is being deleted")

    def _take_parameter(self, item: object) -> None:
        said = self._read(SaidParameter, "parameter", item)
        if said is None:
            return
        if said.component == OPERATOR_POLICY and isinstance(said.value, dict):
            self._take_policy({**said.value, "name": said.name, "vhost": said.vhost}, is_operator=True)
            return
        if said.component != "vhost-limits":
            self._leave_out("parameters", item)
            return
        if not self._knows(said.vhost, f"parameter '{said.name}'"):
            return
        limits = as_table(said.value)
        self._take_limits(said.vhost, limits if isinstance(limits, dict) else {})
        self._count("parameters")

    def _take_limits(self, vhost: str, limits: Mapping[str, object]) -> None:
        found = self._vhosts.find(vhost)
        profile = self._profiles.get(vhost) or (HostProfile() if found is None else found.profile)
        for name, value in limits.items():
            fault = find_fault(name, value) if name in LIMITS else "there is none of that name here"
            if fault or not isinstance(value, int):
                self.left_out.append(f"limit '{name}' of vhost '{vhost}': {fault}")
            else:
                profile = profile.with_limit(name, value)
        self._profiles[vhost] = profile

    def _take_policy(self, item: object, *, is_operator: bool = False) -> None:
        said = self._read(SaidPolicy, "policy", item)
        if said is None or not self._knows(said.vhost, f"policy '{said.name}'"):
            return
        policy = Policy(said.vhost, said.name, said.pattern, said.definition, said.priority, said.apply_to, is_operator)
        try:
            check_policy(policy)
        except InvalidPolicyError as error:
            sort = "operator policy" if is_operator else "policy"
            self.left_out.append(f"{sort} '{said.name}' in vhost '{said.vhost}': {error}")
            return
        self._policies.append(policy)
        self._count("parameters" if is_operator else "policies")

    def _take_exchange(self, item: object) -> None:
        said = self._read(SaidExchange, "exchange", item)
        if said is None or not self._knows(said.vhost, f"exchange '{said.name}'"):
            return
        what = f"exchange '{said.name}' in vhost '{said.vhost}'"
        if said.type not in KINDS and said.type != DELAYED:
            self.left_out.append(f"{what}: there is no type '{said.type}' here")
            return
        draft = self._draft(said.vhost)
        properties = {"durable": said.durable, "auto_delete": said.auto_delete, "internal": said.internal}
        if self._try(what, "exchanges", lambda: draft.add_exchange(said.name, said.type, said.arguments, **properties)):
            self._leave_out_arguments(said.arguments.keys() - KNOWN, what)

    def _take_queue(self, item: object) -> None:
        said = self._read(SaidQueue, "queue", item)
        if said is None or not self._knows(said.vhost, f"queue '{said.name}'"):
            return
        draft = self._draft(said.vhost)
        kind = (QUEUE_TYPES.get(said.type, said.type) or CLASSIC) if said.type else ""
        # Of the usual type a queue says nothing, unless its arguments do, or it would become one of the default type.
        is_usual = kind == CLASSIC and draft.queue_type in {"", CLASSIC}
        arguments = {QUEUE_TYPE: kind, **said.arguments} if kind and not is_usual else said.arguments
        properties = {"durable": said.durable, "auto_delete": said.auto_delete}
        what = f"queue '{said.name}' in vhost '{said.vhost}'"
        if self._try(what, "queues", lambda: draft.add_queue(said.name, arguments, **properties)) and said.arguments:
            self._leave_out_arguments(find_unkept(read_arguments(said.arguments)), what)

    def _take_binding(self, item: object) -> None:
        said = self._read(SaidBinding, "binding", item)
        if said is None:
            return
        what = f"binding from '{said.source}' to {said.destination_type} '{said.destination}' in vhost '{said.vhost}'"
        if not self._knows(said.vhost, what):
            return
        draft = self._draft(said.vhost)
        bind = draft.bind_exchange if said.destination_type == "exchange" else draft.bind_queue
        self._try(what, "bindings", lambda: bind(said.source, said.destination, said.routing_key, said.arguments))

    def _leave_out_arguments(self, names: Iterable[str], what: str) -> None:
        """Say which arguments of what is taken are not kept."""
        for name in sorted(names):
            self.left_out.append(f"argument '{name}' of {what}: it has no meaning here")

    def _read(self, form: type[Said], kind: str, item: object) -> Said | None:
        if isinstance(item, dict) and self._only is not None:
            item = {**item, "vhost": self._only}
        try:
            return form.model_validate(item)
        except ValidationError as error:
            wrong = tell_wrong(error.errors())[0]
            where = ".".join(map(str, wrong.place))
            self._problem(f"{kind} {_shown(item)}: {where}: {wrong.text}" if where else f"{kind}: {wrong.text}")
            return None

    def _knows(self, vhost: str, what: str) -> bool:
        if self.knows_vhost(vhost):
            return True
        self._problem(f"{what}: no vhost '{vhost}'")
        return False

    def _draft(self, vhost: str) -> HostDraft:
        if vhost not in self._drafts:
            found = self._vhosts.find(vhost)
            profile = self._profiles.get(vhost) or (HostProfile() if found is None else found.profile)
            self._drafts[vhost] = HostDraft(vhost, found, queue_type=profile.queue_type)
        return self._drafts[vhost]

    def _try(self, what: str, section: str, take: Callable[[], bool]) -> bool:
        """Take an item, and return whether it is taken; where the gateway has no such thing, that is said."""
        try:
            is_taken = take()
        except AmqpError as error:
            if "inequivalent" in error.reason:
                self._problem(f"{what} is there, and differs: {error.reason}")
                return False
            self.left_out.append(f"{what}: {error.reason}")
            return False
        if is_taken:
            self._count(section)
        else:
            self.left_out.append(f"{what}: one of its ends is not there")
        return is_taken

    def _leave_out(self, section: str, item: object) -> None:
        if not isinstance(item, dict):
            return  # the version of the server that wrote the file, and such
        name = item.get("name", item.get("user", _shown(item)))
        place = f" in vhost '{item['vhost']}'" if "vhost" in item else ""
        what = KINDS_OF.get(section, section)
        component = f" of {item['component']}" if "component" in item else ""
        self.left_out.append(f"{what} '{name}'{component}{place}: {NO_HOME.get(section, 'it has no meaning here')}")

    def _problem(self, text: str) -> None:
        if len(self._problems) <= PROBLEMS_MAX:
            self._problems.append(text)

    def _count(self, section: str) -> None:
        self.counts[section] = self.counts.get(section, 0) + 1


def _shown(item: object) -> str:
    return json.dumps(item)[:100]
