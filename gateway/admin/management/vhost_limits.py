"""How many connections and queues AMQP's virtual hosts may have."""

from __future__ import annotations

from fastapi import Response

from gateway.admin.login import Administrator, Looker
from gateway.admin.management.declared import LimitBody
from gateway.admin.management.failures import bad_request
from gateway.admin.management.keeping import keep
from gateway.admin.management.listing import Asked, Item, Kind, answer_list
from gateway.admin.management.places import find_scope, find_vhosts, get_vhost, see_vhost
from gateway.admin.paths import PathName
from gateway.admin.routes import Routes
from gateway.admin.view import AdminView, View
from gateway.amqp.host_profile import LIMITS, NO_LIMIT
from gateway.amqp.queues import VirtualHost
from gateway.auth.user_quotas import find_fault

VHOST_LIMITS = Routes()


@VHOST_LIMITS.get("/vhost-limits")
async def list_limits(view: View, looker: Looker, asked: Asked) -> Response:
    """The limits of all virtual hosts that have one."""
    vhosts = find_vhosts(view, find_scope(view, looker, None))
    return await answer_list(asked, KIND, (one if one.profile.limits else None for one in vhosts))


@VHOST_LIMITS.get("/vhost-limits/{vhost}")
async def list_limits_of(view: View, looker: Looker, vhost: PathName) -> list[Item]:
    """The limits of one virtual host, where it has one."""
    found = see_vhost(view, looker, vhost)
    return [_tell(found)] if found.profile.limits else []


@VHOST_LIMITS.put("/vhost-limits/{vhost}/{name}", status_code=204)
async def set_limit(view: View, administrator: Administrator, vhost: PathName, name: PathName, said: LimitBody) -> None:
    """Set `max-connections` or `max-queues`; what is there already stays."""
    del administrator
    await _set(view, vhost, name, said.value)


@VHOST_LIMITS.delete("/vhost-limits/{vhost}/{name}", status_code=204)
async def clear_limit(view: View, administrator: Administrator, vhost: PathName, name: PathName) -> None:
    """Take a limit back, harmless where there is none."""
    del administrator
    await _set(view, vhost, name, NO_LIMIT)


async def _set(view: AdminView, vhost: str, name: str, value: int) -> None:
    found = get_vhost(view, vhost)
    if name not in LIMITS:
        raise bad_request(f"no limit '{name}': there are {' and '.join(LIMITS)}")
    fault = find_fault(name, value)
    if fault:
        raise bad_request(f"{name} {fault}")
    view.vhosts.make(vhost, found.profile.with_limit(name, value))
    await keep(view.broker)


def _tell(vhost: VirtualHost) -> Item:
    return {"vhost": vhost.name, "value": vhost.profile.limits}


KIND: Kind[VirtualHost] = Kind(name=lambda vhost: vhost.name, describe=_tell)
