"""Tells which clients connect and log in most often lately, so that one that does so in a loop has a name."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from gateway.admin.login import Monitor
from gateway.admin.management.listing import Item
from gateway.admin.routes import Routes
from gateway.admin.view import View

CHURN = Routes()
COUNT_MAX = 256  # more are not counted: `gateway.churn.KEYS_MAX`


@CHURN.get("/churn")
async def list_churn(view: View, monitor: Monitor, count: Annotated[int, Query(ge=1, le=COUNT_MAX)] = 20) -> Item:
    """What connected and logged in most often within the last minute, and what became of it, the most frequent first.

    `connections` are told by address, `logins` by client, user and address; `outcome` is what the log says. They are
    of the last `within_s` seconds, 30 to 60 once the gateway is up for so long. Each count is too low by the list's
    `missed_max` at most: where more than 256 come, those that come seldom are not remembered.
    """
    del monitor
    churn = view.authenticator.events.churn
    connections, connections_missed = churn.find_connections(count)
    logins, logins_missed = churn.find_logins(count)
    return {
        "within_s": round(churn.within_s()),
        "connections": [
            {"count": came, "door": one.door, "host": one.host, "outcome": one.outcome} for one, came in connections
        ],
        "connections_missed_max": connections_missed,
        "logins": [{"count": came, **one._asdict()} for one, came in logins],
        "logins_missed_max": logins_missed,
    }
