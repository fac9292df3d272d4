"""The whole gateway on one page, its one node, and the user that asks."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator

from core.metrics import DoorMetrics
from gateway.admin.login import Caller, Looker, Member, Monitor
from gateway.admin.management.failures import not_found
from gateway.admin.management.listing import Item
from gateway.admin.management.names import CLUSTER, LIKE, NODE
from gateway.admin.management.vhost_stats import tell_stats
from gateway.admin.paths import PathName
from gateway.admin.routes import Routes
from gateway.admin.schemas import DoorOverview, EndingCertificate, Overview
from gateway.admin.steps import walk
from gateway.admin.view import AdminView, View
from gateway.amqp.exchanges import DELAYED, KINDS
from gateway.net.descriptors import descriptor_limit, open_descriptors
from gateway.process.memory import own_bytes
from gateway.version import VERSION

MEMORY_PARTS = (  # of RabbitMQ's processes, which clients of its API want to read
    *("connection_readers", "connection_writers", "connection_channels", "connection_other", "queue_procs"),
    *("quorum_queue_procs", "stream_queue_procs", "stream_queue_replica_reader_procs"),
    *("stream_queue_coordinator_procs", "plugins", "metadata_store", "other_proc", "metrics", "mgmt_db", "mnesia"),
    *("quorum_ets", "metadata_store_ets", "other_ets", "binary", "msg_index", "code", "atom"),
    *("allocated_unused", "reserved_unallocated"),
)
OVERVIEW = Routes()
PROTOCOLS = {"amqp": "amqp091", "mqtt": "mqtt", "admin": "http"}  # by door, RabbitMQ's word in counts of logins
GOOD = ("known", "anonymous")  # outcomes of logins that let a client in


@OVERVIEW.get("/whoami")
async def whoami(member: Member) -> Item:
    """The caller, and what it may do here."""
    return {"name": member.user, "tags": list(member.tags), "is_internal_user": True}


@OVERVIEW.get("/overview")
async def overview(view: View, looker: Looker) -> Item:
    """Counts of everything; `lmq` has the gateway's own, by door.

    A caller that is neither an administrator nor a monitor is told of its own virtual hosts and connections alone.
    """
    await view.totals.find()
    about = {
        "management_version": LIKE,
        "rates_mode": "basic",
        "product_name": "LMQ Gateway",
        "product_version": VERSION,
        "rabbitmq_version": LIKE,
        "cluster_name": CLUSTER,
        "erlang_version": "",
        "exchange_types": [{"name": kind, "description": "", "enabled": True} for kind in (*KINDS, DELAYED)],
    }
    return {**about, **(_tell_all(view) if looker.sees_all else await _tell_own(view, looker))}


def _tell_all(view: AdminView) -> Item:
    totals = view.totals.latest
    return {
        "node": NODE,
        "object_totals": {
            "channels": totals.channels,
            "connections": view.broker.metrics.door("amqp").connections,
            "consumers": totals.readers,
            "exchanges": sum(len(vhost.exchanges) for vhost in view.vhosts),
            "queues": sum(len(vhost) for vhost in view.vhosts),
        },
        "queue_totals": {
            "messages": totals.ready + totals.unacked,
            "messages_ready": totals.ready,
            "messages_unacknowledged": totals.unacked,
        },
        "message_stats": _tell_traffic(view),
        "listeners": _tell_listeners(view),
        "contexts": [],
        "lmq": describe_gateway(view).model_dump(),
    }


async def _tell_own(view: AdminView, caller: Caller) -> Item:
    """Return what the virtual hosts have that a caller may enter, and its own connections."""
    vhosts = [vhost for vhost in view.vhosts if caller.may_see_vhost(vhost.name)]
    totals = view.totals.latest.within({vhost.name for vhost in vhosts})
    connections = channels = 0
    async for one in walk(view.amqp.inventory().connections()):
        if caller.may_see_user(one.user):
            connections += 1
            channels += one.channels
    return {
        "object_totals": {
            "channels": channels,
            "connections": connections,
            "consumers": totals.readers,
            "exchanges": sum(len(vhost.exchanges) for vhost in vhosts),
            "queues": sum(len(vhost) for vhost in vhosts),
        },
        "queue_totals": {
            "messages": totals.ready + totals.unacked,
            "messages_ready": totals.ready,
            "messages_unacknowledged": totals.unacked,
        },
        "message_stats": tell_stats(view, vhosts),
        "lmq": describe_state(view),
    }


@OVERVIEW.get("/nodes")
async def list_nodes(view: View, monitor: Monitor) -> list[Item]:
    """The one node."""
    del monitor
    return [_tell_node(view)]


@OVERVIEW.get("/nodes/{name}")
async def show_node(view: View, monitor: Monitor, name: PathName) -> Item:
    """The one node, by its name."""
    del monitor
    if name != NODE:
        raise not_found(f"no node '{name}'")
    return _tell_node(view)


@OVERVIEW.get("/nodes/{name}/memory")
async def show_memory(monitor: Monitor, name: PathName) -> Item:
    """How much memory the one node uses, in all: its parts are not known."""
    del monitor
    if name != NODE:
        raise not_found(f"no node '{name}'")
    used = own_bytes()
    total = {"rss": used, "allocated": used, "erlang": 0}
    return {"memory": {**dict.fromkeys(MEMORY_PARTS, 0), "other_system": used, "strategy": "rss", "total": total}}


@OVERVIEW.get("/auth/attempts/{name}")
async def show_attempts(view: View, monitor: Monitor, name: PathName) -> list[Item]:
    """Logins since the start by door, and how many of them failed.

    Of the doors that RabbitMQ has a word for, as its tools refuse an answer with another; /metrics tells of all.
    """
    del monitor
    if name != NODE:
        raise not_found(f"no node '{name}'")
    doors = view.broker.metrics.doors.values()
    return [_tell_attempts(door, PROTOCOLS[door.name]) for door in doors if door.logins and door.name in PROTOCOLS]


def _tell_attempts(door: DoorMetrics, protocol: str) -> Item:
    total, good = sum(door.logins.values()), sum(door.logins.get(outcome, 0) for outcome in GOOD)
    return {
        "protocol": protocol,
        "auth_attempts": total,
        "auth_attempts_succeeded": good,
        "auth_attempts_failed": total - good,
    }


def _tell_node(view: AdminView) -> Item:
    room = view.broker.room
    return {
        "name": NODE,
        "type": "disc",
        "running": True,
        "being_drained": False,
        "os_pid": str(os.getpid()),
        "uptime": view.uptime_ms(),
        "processors": os.cpu_count(),
        "fd_total": descriptor_limit(),
        "fd_used": open_descriptors(),
        "sockets_total": view.capacity.connections_max,
        "sockets_used": sum(door.connections for door in view.broker.metrics.doors.values()),
        "disk_free": room.free_bytes,
        "disk_free_limit": room.free_bytes_min,
        "disk_free_alarm": room.is_disk_low,
        "mem_used": view.memory.used_bytes,
        "mem_limit": view.memory.bytes_max,
        "mem_alarm": room.is_memory_low,
        "partitions": [],
        "rates_mode": "basic",
        "applications": [{"name": "lmq-gateway", "description": "LMQ Gateway", "version": VERSION}],
        "exchange_types": [{"name": kind, "description": "", "enabled": True} for kind in (*KINDS, DELAYED)],
        "lmq": {"python": platform.python_version()},
    }


def _tell_traffic(view: AdminView) -> Item:
    doors = view.broker.metrics.doors.values()
    rate_in, rate_out = view.rates
    return {
        "publish": sum(door.messages_in for door in doors),
        "publish_details": {"rate": rate_in},
        "deliver_get": sum(door.messages_out for door in doors),
        "deliver_get_details": {"rate": rate_out},
    }


def _tell_listeners(view: AdminView) -> list[Item]:
    return [
        {"node": NODE, "protocol": name, "ip_address": host, "port": port} for name, (host, port) in view.listening()
    ]


def describe_state(view: AdminView) -> Item:
    """Return what everybody is told that may look: whether the gateway is well."""
    return {
        "version": VERSION,
        "is_ready": view.is_ready(),
        "uptime_ms": view.uptime_ms(),
        "disk": view.disk,
        "memory": "low" if view.broker.room.is_memory_low else "ok",
        "alarms": view.alarms(),
    }


def describe_gateway(view: AdminView) -> Overview:
    """Return the counters of the whole gateway and of each door."""
    figures = view.broker.figures()
    doors = {name: _describe_door(door) for name, door in sorted(view.broker.metrics.doors.items())}
    return Overview(
        **describe_state(view),
        messages_stored=figures.messages_stored,
        dispatches=figures.dispatches,
        light_queues=figures.queues,
        log_bytes=figures.log_bytes,
        disk_free_bytes=view.broker.room.free_bytes,
        disk_free_bytes_min=view.broker.room.free_bytes_min,
        memory_bytes=view.memory.used_bytes,
        memory_bytes_max=view.memory.bytes_max,
        certificates_ending=list(_find_ending(view, time.time())),
        connections=sum(door.connections for door in doors.values()),
        doors=doors,
    )


def _find_ending(view: AdminView, now_s: float) -> Iterator[EndingCertificate]:
    for one in view.certificates():
        for each in one.certificates:
            if each.ends_soon(now_s):
                yield EndingCertificate(
                    listener=one.name,
                    address=one.address,
                    file=str(each.path),
                    names=list(each.names),
                    expires_at_ms=each.expires_at_s * 1_000,
                )


def _describe_door(door: DoorMetrics) -> DoorOverview:
    return DoorOverview(**{name: getattr(door, name) for name in DoorOverview.model_fields})
