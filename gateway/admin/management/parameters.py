"""What RabbitMQ keeps for its plugins, and tells of itself: questions that tools ask and that have a short answer."""

from __future__ import annotations

from gateway.admin.login import Administrator, Looker, Member
from gateway.admin.management.failures import bad_request, not_found
from gateway.admin.management.listing import Item
from gateway.admin.management.names import CLUSTER
from gateway.admin.management.places import see_vhost
from gateway.admin.paths import PathName
from gateway.admin.routes import Routes
from gateway.admin.view import View

PARAMETERS = Routes()
CLUSTER_NAME = "cluster_name"


@PARAMETERS.get("/extensions")
@PARAMETERS.get("/feature-flags")
@PARAMETERS.get("/deprecated-features")
@PARAMETERS.get("/deprecated-features/used")
@PARAMETERS.get("/parameters")
async def list_none(looker: Looker) -> list[Item]:
    """None: there are no plugins, and no features to switch on."""
    del looker
    return []


@PARAMETERS.get("/parameters/{component}")
async def list_parameters_of(looker: Looker, component: PathName) -> list[Item]:
    """None: there are no plugins."""
    del looker, component
    return []


@PARAMETERS.get("/parameters/{component}/{vhost}")
async def list_parameters_in(view: View, looker: Looker, component: PathName, vhost: PathName) -> list[Item]:
    """None, in a virtual host that is there."""
    del component
    see_vhost(view, looker, vhost)
    return []


@PARAMETERS.get("/parameters/{component}/{vhost}/{name}")
async def show_parameter(looker: Looker, component: PathName, vhost: PathName, name: PathName) -> Item:
    """A parameter of a plugin: there is none."""
    del looker, component, vhost, name
    raise not_found()


@PARAMETERS.delete("/parameters/{component}/{vhost}/{name}", status_code=204)
async def remove_parameter(caller: Member, component: PathName, vhost: PathName, name: PathName) -> None:
    """A parameter of a plugin: there is none."""
    caller.check_policymaker(vhost)
    del component, name
    raise not_found()


@PARAMETERS.put("/parameters/{component}/{vhost}/{name}", status_code=204)
async def set_parameter(caller: Member, component: PathName, vhost: PathName, name: PathName) -> None:
    """A parameter of a plugin: there is no plugin that would take it."""
    caller.check_policymaker(vhost)
    del name
    raise bad_request(f"Validation failed\n\ncomponent {component} not found\n")


@PARAMETERS.get("/global-parameters")
async def list_global_parameters(looker: Looker) -> list[Item]:
    """What the gateway is called as a cluster of one."""
    del looker
    return [{"name": CLUSTER_NAME, "value": CLUSTER}]


@PARAMETERS.get("/global-parameters/{name}")
async def show_global_parameter(looker: Looker, name: PathName) -> Item:
    """One of these."""
    del looker
    if name != CLUSTER_NAME:
        raise not_found()
    return {"name": CLUSTER_NAME, "value": CLUSTER}


@PARAMETERS.put("/global-parameters/{name}", status_code=204)
@PARAMETERS.delete("/global-parameters/{name}", status_code=204)
async def set_global_parameter(administrator: Administrator, name: PathName) -> None:
    """One of these, which are as they are."""
    del administrator
    raise bad_request(f"the parameter '{name}' cannot be set here")


@PARAMETERS.post("/rebalance/queues", status_code=204)
async def rebalance_queues(administrator: Administrator) -> None:
    """Do nothing: all queues are on the one node."""
    del administrator


@PARAMETERS.get("/auth")
async def show_login(looker: Looker) -> Item:
    """How the management console logs in: not by OAuth."""
    del looker
    return {"oauth_enabled": False}
