"""Bridges to other MQTT brokers: whether each stands, and else why not, and what waits to be carried."""

from __future__ import annotations

from fastapi import Response

from core.metrics import BridgeMetrics
from gateway.admin.login import Monitor
from gateway.admin.management.listing import Asked, Item, Kind, answer_list
from gateway.admin.routes import Routes
from gateway.admin.steps import walk
from gateway.admin.view import AdminView, View
from gateway.auth.credentials import OWN_PREFIX

BRIDGES = Routes()


@BRIDGES.get("/bridges")
async def list_bridges(view: View, monitor: Monitor, asked: Asked) -> Response:
    """The bridges of the settings; `cause` is why one does not stand, `waiting` what it has not handed out yet.

    `messages_in`, `messages_out`, `dropped` (by reason), `connects` and `failures` count since the start.
    """
    del monitor
    bridges = list(view.broker.metrics.bridges.values())
    return await answer_list(asked, KIND, [await _tell(view, bridge) for bridge in bridges])


async def _tell(view: AdminView, bridge: BridgeMetrics) -> Item:
    waiting = 0
    for door in view.doors.values():
        async for one in walk(door.inventory().subscriptions(f"{OWN_PREFIX}{bridge.name}") or ()):
            waiting += max(one.max_offset - one.next_offset, 0) + one.inflight
    return {
        "name": bridge.name,
        "address": bridge.address,
        "connected": bridge.is_connected,
        "cause": bridge.cause,
        "waiting": waiting,
        "messages_in": bridge.messages_in,
        "messages_out": bridge.messages_out,
        "connects": bridge.connects,
        "failures": bridge.failures,
        "dropped": bridge.dropped,
    }


KIND: Kind[Item] = Kind(
    name=lambda item: str(item["name"]),
    describe=lambda item: item,
    figures={
        "connected": lambda item: int(item["connected"]),
        "waiting": lambda item: item["waiting"],
        "messages_in": lambda item: item["messages_in"],
        "messages_out": lambda item: item["messages_out"],
        "failures": lambda item: item["failures"],
        "address": lambda item: item["address"],
    },
)
