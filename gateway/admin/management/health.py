"""Whether the gateway is fit for work, in the ways that RabbitMQ's API is asked."""

from __future__ import annotations

import time
from typing import Annotated, Literal

from fastapi import Path, Response

from gateway.admin.login import Looker
from gateway.admin.management.listing import Item
from gateway.admin.management.names import CLUSTER
from gateway.admin.management.places import see_vhost
from gateway.admin.paths import PathName
from gateway.admin.routes import Routes
from gateway.admin.view import View

HEALTH = Routes()
FAILED = 503
# What RabbitMQ's check understands, in lower case, and the listeners here that it stands for.
PROTOCOLS = {
    **dict.fromkeys(("amqp091", "amqp0.9.1", "amqp0-9-1", "amqp0_9_1"), "amqp"),
    "amqp/ssl": "amqps",
    **dict.fromkeys(("mqtt31", "mqtt3.1", "mqtt3_1", "mqtt311", "mqtt3.1.1", "mqtt3_1_1"), "mqtt"),
    **dict.fromkeys(("mqtt/ssl", "mqtt+ssl", "mqtt+tls"), "mqtts"),
    **dict.fromkeys(("web-mqtt", "web_mqtt", "webmqtt", "http/web-mqtt"), "ws"),
    **dict.fromkeys((f"{web}mqtt{by}" for web in ("web-", "web") for by in ("/ssl", "/tls", "+ssl", "+tls")), "wss"),
    "https/web-mqtt": "wss",
    **dict.fromkeys(("http1", "http1.1", "http_api", "management", "management_ui", "ui", "admin"), "http"),
    "admin-tls": "https",
}
UNIT_S = {"days": 86_400, "weeks": 604_800, "months": 2_629_746, "years": 31_556_952}
Unit = Literal["days", "weeks", "months", "years"]


@HEALTH.get("/cluster-name")
async def cluster_name(looker: Looker) -> Item:
    """What the gateway is called as a cluster of one."""
    del looker
    return {"name": CLUSTER}


@HEALTH.get("/aliveness-test/{vhost}")
async def aliveness_test(view: View, looker: Looker, vhost: PathName, response: Response) -> Item:
    """Work is taken in a virtual host."""
    see_vhost(view, looker, vhost)
    return _say(response, "" if view.is_ready() else "the gateway takes no work")


@HEALTH.get("/healthchecks/node")
@HEALTH.get("/health/checks/virtual-hosts")
@HEALTH.get("/health/checks/ready-to-serve-clients")
@HEALTH.get("/health/checks/is-in-service")
async def takes_work(view: View, looker: Looker, response: Response) -> Item:
    """All doors are open, and work is taken."""
    del looker
    return _say(response, "" if view.is_ready() else "the gateway takes no work")


@HEALTH.get("/healthchecks/node/{name}")
async def node_takes_work(view: View, looker: Looker, name: PathName, response: Response) -> Item:
    """As `/healthchecks/node`: there is one node, whatever its name."""
    del name
    return await takes_work(view, looker, response)


@HEALTH.get("/health/checks/alarms")
@HEALTH.get("/health/checks/local-alarms")
async def has_no_alarm(view: View, looker: Looker, response: Response) -> Item:
    """No publisher is held back, and no newcomer refused."""
    del looker
    return _say(response, ", ".join(view.alarms()))


@HEALTH.get("/health/checks/node-is-mirror-sync-critical")
@HEALTH.get("/health/checks/node-is-quorum-critical")
async def is_not_critical(looker: Looker) -> Item:
    """Nothing waits for another node."""
    del looker
    return {"status": "ok", "reason": "single node cluster"}


@HEALTH.get("/health/checks/quorum-queues-without-elected-leaders/vhost/{vhost}/pattern/{pattern}")
async def has_leaders(view: View, looker: Looker, vhost: PathName, pattern: PathName) -> Item:
    """No quorum queue waits for a leader: the one node leads all of them."""
    del pattern
    see_vhost(view, looker, vhost)
    return {"status": "ok"}


@HEALTH.get("/health/checks/below-node-connection-limit")
async def has_room_for_connections(view: View, looker: Looker, response: Response) -> Item:
    """More connections may come in."""
    del looker
    used = sum(door.connections for door in view.broker.metrics.doors.values())
    limit = view.capacity.connections_max
    told = {"current": used, "limit": limit}
    return {**_say(response, "" if used < limit else "the gateway has as many connections as it may have"), **told}


@HEALTH.get("/health/checks/port-listener/{port}")
async def listens_on(
    view: View, looker: Looker, port: Annotated[int, Path(ge=0, le=65_535)], response: Response
) -> Item:
    """Some door listens on a port."""
    del looker
    ports = sorted({bound for _, (_, bound) in view.listening() if bound})  # a Unix socket has none
    if port in ports:
        return {"status": "ok", "port": port}
    return {**_say(response, "No active listener"), "missing": port, "ports": ports}


@HEALTH.get("/health/checks/protocol-listener/{protocol}")
async def listens_for(view: View, looker: Looker, protocol: PathName, response: Response) -> Item:
    """Some door listens for a protocol, or for each of several that have commas between them."""
    del looker
    protocols = {_find_protocol(name) for name, _ in view.listening()}
    missing = [name for name in protocol.split(",") if _find_protocol(name) not in protocols]
    if not missing:
        return {"status": "ok", "protocol": protocol}
    return {**_say(response, "No active listener"), "missing": ",".join(missing), "protocols": sorted(protocols)}


@HEALTH.get("/health/checks/certificate-expiration/{within}/{unit}")
async def certificates_last(
    view: View, looker: Looker, within: Annotated[int, Path(ge=1, le=1_000)], unit: Unit, response: Response
) -> Item:
    """No certificate expires within a time."""
    del looker
    until_s = time.time() + within * UNIT_S[unit]
    expired = sorted(
        {one.address for one in view.certificates() if any(each.expires_at_s < until_s for each in one.certificates)}
    )
    return _say(response, f"certificates expire of {', '.join(expired)}" if expired else "")


def _find_protocol(name: str) -> str:
    return PROTOCOLS.get(name.lower(), name.lower())


def _say(response: Response, trouble: str) -> Item:
    if not trouble:
        return {"status": "ok"}
    response.status_code = FAILED
    return {"status": "failed", "reason": trouble}
