"""How many connections and channels users may have, and how fast they publish, are sent messages and log in."""

from __future__ import annotations

from fastapi import Response

from gateway.admin.login import Administrator
from gateway.admin.management.declared import LimitBody
from gateway.admin.management.failures import bad_request, not_found
from gateway.admin.management.keeping import keep
from gateway.admin.management.listing import Asked, Item, Kind, answer_list
from gateway.admin.paths import PathName
from gateway.admin.routes import Routes
from gateway.admin.view import AdminView, View
from gateway.auth.credentials import GUEST
from gateway.auth.user_quotas import NAMES, NO_LIMIT, find_fault

USER_LIMITS = Routes()


@USER_LIMITS.get("/user-limits")
async def list_user_limits(view: View, administrator: Administrator, asked: Asked) -> Response:
    """The limits of all users that have one of their own."""
    del administrator
    return await answer_list(asked, KIND, list(view.authenticator.quotas.stored.items()))


@USER_LIMITS.get("/user-limits/{user}")
async def list_limits_of_user(view: View, administrator: Administrator, user: PathName) -> list[Item]:
    """The limits of one user, where it has one of its own."""
    del administrator
    _check_there(view, user)
    limits = view.authenticator.quotas.stored.get(user)
    return [] if limits is None else [_tell(user, limits)]


@USER_LIMITS.put("/user-limits/{user}/{name}", status_code=204)
async def set_user_limit(
    view: View, administrator: Administrator, user: PathName, name: PathName, said: LimitBody
) -> None:
    """Set `max-connections`, `max-channels` or a rate, such as `messages-rate`; what is there already stays."""
    del administrator
    await _set(view, user, name, said.value)


@USER_LIMITS.delete("/user-limits/{user}/{name}", status_code=204)
async def clear_user_limit(view: View, administrator: Administrator, user: PathName, name: PathName) -> None:
    """Take a limit back, harmless where there is none."""
    del administrator
    await _set(view, user, name, NO_LIMIT)


async def _set(view: AdminView, user: str, name: str, value: int) -> None:
    _check_there(view, user)
    if name not in NAMES:
        raise bad_request(f"no limit '{name}': there are {', '.join(NAMES)}")
    fault = find_fault(name, value)
    if fault:
        raise bad_request(f"{name} {fault}")
    view.authenticator.quotas.set(user, name, value)
    await keep(view.broker)


def _check_there(view: AdminView, user: str) -> None:
    if user != GUEST and all(one.name != user for one in view.authenticator.users()):
        raise not_found(f"no user '{user}'")


def _tell(user: str, limits: dict[str, int]) -> Item:
    return {"user": user, "value": limits}


KIND: Kind[tuple[str, dict[str, int]]] = Kind(name=lambda one: one[0], describe=lambda one: _tell(*one))
