"""Policies, and operator policies, of AMQP's virtual hosts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from fastapi import HTTPException, Response
from pydantic import BaseModel, ConfigDict, Field

from gateway.admin.login import Caller, Looker, Member
from gateway.admin.management.failures import CHANGED, bad_request, not_found
from gateway.admin.management.keeping import keep
from gateway.admin.management.listing import Asked, Item, Kind, Question, answer_list
from gateway.admin.management.places import Scope, find_scope, find_vhosts, get_vhost, see_vhost
from gateway.admin.paths import PathName
from gateway.admin.routes import Routes
from gateway.admin.view import AdminView, View
from gateway.amqp.policies import ALL, InvalidPolicyError, Policy
from gateway.amqp.policy_keys import NO_MEANING, term_of

POLICIES = Routes()
OPERATOR_POLICIES = Routes()
NAME_BYTES_MAX = 255  # AMQP's short strings


class PolicyBody(BaseModel):
    """What is said of a policy."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)  # name and virtual host stand in the path

    pattern: str
    definition: dict[str, object]
    priority: object = 0
    apply_to: Annotated[str, Field(alias="apply-to")] = ALL


def _add_routes(router: Routes, path: str, *, is_operator: bool) -> None:
    """Add the routes of policies of one sort."""

    @router.get(path)
    async def list_policies(view: View, looker: Looker, asked: Asked) -> Response:
        """Those of all virtual hosts."""
        return await _list(view, find_scope(view, looker, None), asked, is_operator=is_operator)

    @router.get(f"{path}/{{vhost}}")
    async def list_policies_in(view: View, looker: Looker, asked: Asked, vhost: PathName) -> Response:
        """Those of one virtual host."""
        return await _list(view, find_scope(view, looker, vhost), asked, is_operator=is_operator)

    @router.get(f"{path}/{{vhost}}/{{name}}")
    async def show_policy(view: View, looker: Looker, vhost: PathName, name: PathName) -> Item:
        """One of them."""
        see_vhost(view, looker, vhost)
        return tell_policy(_get(view, vhost, name, is_operator=is_operator))

    @router.put(f"{path}/{{vhost}}/{{name}}", status_code=201, response_class=Response, responses=CHANGED)
    async def put_policy(view: View, caller: Member, vhost: PathName, name: PathName, said: PolicyBody) -> Response:
        """Set a policy: 201, or 204 where it existed; it counts for its queues and exchanges from now on."""
        _check(caller, vhost, is_operator=is_operator)
        get_vhost(view, vhost)
        if not 0 < len(name.encode()) <= NAME_BYTES_MAX:
            raise bad_request(f"the name of a policy has 1 to {NAME_BYTES_MAX} bytes")
        priority = said.priority
        if not isinstance(priority, int) or isinstance(priority, bool):
            raise _invalid(f"priority should be a number, actually was {term_of(priority)}")
        policy = Policy(vhost, name, said.pattern, said.definition, priority, said.apply_to, is_operator)
        try:
            is_new = view.vhosts.put_policy(policy)
        except InvalidPolicyError as error:
            raise _invalid(str(error)) from error
        await keep(view.broker)
        return Response(status_code=201 if is_new else 204)

    @router.delete(f"{path}/{{vhost}}/{{name}}", status_code=204)
    async def delete_policy(view: View, caller: Member, vhost: PathName, name: PathName) -> Response:
        """Delete a policy; the remaining ones count for its queues and exchanges."""
        _check(caller, vhost, is_operator=is_operator)
        view.vhosts.delete_policy(_get(view, vhost, name, is_operator=is_operator))
        await keep(view.broker)
        return Response(status_code=204)


def _check(caller: Caller, vhost: str, *, is_operator: bool) -> None:
    """Return where the asking user may set a policy there: those of operators are for administrators alone."""
    if is_operator:
        caller.check_administrator()
    else:
        caller.check_policymaker(vhost)


def _invalid(reason: str) -> HTTPException:
    return bad_request(f"Validation failed\n\n{reason}\n")


def _get(view: AdminView, vhost: str, name: str, *, is_operator: bool) -> Policy:
    get_vhost(view, vhost)
    found = view.vhosts.policies.find(vhost, name, is_operator=is_operator)
    if found is None:
        raise not_found(f"no policy '{name}' in vhost '{vhost}'")
    return found


async def _list(view: AdminView, scope: Scope, asked: Question, *, is_operator: bool) -> Response:
    kind: Kind[Policy] = Kind(name=lambda policy: policy.name, describe=tell_policy)
    hosts = {one.name for one in find_vhosts(view, scope)}
    return await answer_list(asked, kind, _walk(view, hosts, is_operator=is_operator))


def _walk(view: AdminView, hosts: set[str], *, is_operator: bool) -> Iterator[Policy | None]:
    for policy in view.vhosts.policies:
        yield policy if policy.is_operator == is_operator and policy.vhost in hosts else None


def tell_policy(policy: Policy) -> Item:
    """Return a policy as the API tells it; `lmq` says which of its keys mean nothing here."""
    return {
        "vhost": policy.vhost,
        "name": policy.name,
        "pattern": policy.pattern,
        "apply-to": policy.apply_to,
        "definition": policy.definition,
        "priority": policy.priority,
        "lmq": {"without_effect": sorted(set(policy.definition) & set(NO_MEANING))},
    }


_add_routes(POLICIES, "/policies", is_operator=False)
_add_routes(OPERATOR_POLICIES, "/operator-policies", is_operator=True)
