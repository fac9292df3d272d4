"""MQTT's sessions and their subscriptions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Annotated

from fastapi import Query, Response

from gateway.admin.login import Administrator, Caller, Looker
from gateway.admin.management.failures import not_found
from gateway.admin.management.listing import Asked, Item, Kind, answer_kept, answer_list
from gateway.admin.paths import PathName
from gateway.admin.rosters.grouped_part import GroupedPart
from gateway.admin.rosters.newer import held_still
from gateway.admin.rosters.part import Part
from gateway.admin.rosters.roster import Roster
from gateway.admin.rosters.walked_parts import OrderedPart
from gateway.admin.routes import Routes
from gateway.admin.view import View
from gateway.inventory import Inventory, SessionEntry, SubscriptionEntry, text_of
from gateway.mqtt.inventory import MqttInventory, describe_session
from gateway.mqtt.session_table import SessionTable

SESSIONS = Routes()
Placed = tuple[str, SubscriptionEntry]  # with the client
REASON = "an operator ended the session"


@SESSIONS.get("/sessions")
async def list_sessions(view: View, looker: Looker, asked: Asked) -> Response:
    """The sessions, connected or not."""
    if not looker.sees_all:
        return await answer_list(asked, SESSION, _sessions(view.mqtt.inventory(), looker))
    return await answer_kept(asked, SESSION, view.rosters.get("sessions", lambda: SessionRoster(view.mqtt.sessions)))


@SESSIONS.get("/sessions/{client}")
async def show_session(view: View, looker: Looker, client: PathName) -> Item:
    """One session, with its subscriptions and what each still waits for."""
    inventory = view.mqtt.inventory()
    session = inventory.find_session(client)
    if session is None or not looker.may_see_user(session.user):
        raise not_found(f"no session '{client}'")
    found = inventory.subscriptions(client) or ()
    return {**tell_session(session), "subscription_details": [tell_subscription((client, one)) for one in found]}


@SESSIONS.delete("/sessions/{client}", status_code=204)
async def end_session(view: View, administrator: Administrator, client: PathName) -> None:
    """End a session, with its subscriptions and its connection."""
    del administrator
    if not view.mqtt.inventory().end_session(client, REASON, view.begin_read(0)):
        raise not_found(f"no session '{client}'")


@SESSIONS.get("/subscriptions")
async def list_subscriptions(
    view: View, looker: Looker, asked: Asked, client: Annotated[str | None, Query(max_length=65_535)] = None
) -> Response:
    """The subscriptions of all sessions, or of one client's."""
    if client is None and looker.sees_all:
        roster = view.rosters.get(
            "subscriptions", lambda: SubscriptionRoster(view.mqtt.inventory(), view.mqtt.sessions)
        )
        return await answer_kept(asked, SUBSCRIPTION, roster)
    return await answer_list(asked, SUBSCRIPTION, _walk(view.mqtt.inventory(), client, looker))


class SessionRoster(Roster[str, SessionEntry]):
    """The sessions, in the order they came."""

    def __init__(self, sessions: SessionTable) -> None:
        super().__init__()
        self._sessions = sessions

    def sources(self) -> Iterable[str]:
        """Return the one place where they are."""
        return ("mqtt",)

    def open(self, source: str) -> Part[SessionEntry]:
        """Return them."""
        del source
        table = self._sessions
        return OrderedPart(
            lambda: held_still(reversed(table)),
            lambda: len(table),
            table.is_there,
            text_of,
            lambda client_id: _describe(table, client_id),
            {
                "subscriptions": lambda clients: [table.tally(client_id)[0] for client_id in clients],
                "inflight": lambda clients: [table.tally(client_id)[1] for client_id in clients],
            },
        )


class SubscriptionRoster(Roster[str, Placed]):
    """The subscriptions of all sessions."""

    def __init__(self, inventory: MqttInventory, sessions: SessionTable) -> None:
        super().__init__()
        self._inventory = inventory
        self._sessions = sessions

    def sources(self) -> Iterable[str]:
        """Return the one place where they are."""
        return ("mqtt",)

    def open(self, source: str) -> Part[Placed]:
        """Return them."""
        del source
        inventory, sessions = self._inventory, self._sessions

        def tell(found: tuple[bytes, bytes]) -> Placed | None:
            entry = inventory.describe_subscription(*found)
            return None if entry is None else (text_of(found[0]), entry)

        return GroupedPart(
            inventory.filter_lists,
            tell,
            lambda: sessions.changes,
            {
                "client": lambda some: ["" if found is None else text_of(found[0]) for found in some],
                "qos": partial(inventory.tell_subscriptions, "qos"),
                "waiting": partial(inventory.tell_subscriptions, "waiting"),
            },
        )


def _describe(table: SessionTable, client_id: bytes) -> SessionEntry:
    outline = table.outline(client_id)
    assert outline is not None  # it is there
    return describe_session(outline)


def _sessions(inventory: Inventory, caller: Caller) -> Iterator[SessionEntry | None]:
    """Go through the sessions that a caller is told of: all, or those of its own name."""
    return (one if one and caller.may_see_user(one.user) else None for one in inventory.sessions())


def _walk(inventory: Inventory, only: str | None, caller: Caller) -> Iterator[Placed | None]:
    for session in _sessions(inventory, caller):
        if session is None or only not in {None, session.client}:
            yield None
            continue
        for entry in inventory.subscriptions(session.client) or ():
            yield session.client, entry


def tell_session(entry: SessionEntry) -> Item:
    """Return a session as the API tells it."""
    return {
        "client": entry.client,
        "user": entry.user or "",
        "connected": entry.is_connected,
        "connection": entry.conn_id,
        "persistent": entry.is_persistent,
        "subscriptions": entry.subscriptions,
        "inflight": entry.inflight,
        "redelivered": entry.redelivered,
    }


def tell_subscription(placed: Placed) -> Item:
    """Return a subscription as the API tells it."""
    client, entry = placed
    return {
        "client": client,
        "filter": entry.topic_filter,
        "qos": entry.qos,
        "waiting": waiting_of(entry),
        "inflight": entry.inflight,
        "next_offset": entry.next_offset,
        "light_queue": entry.light_queue,
    }


def waiting_of(entry: SubscriptionEntry) -> int:
    """Return how many messages a subscription is still to be sent."""
    return max(entry.max_offset - entry.next_offset, 0)


SUBSCRIPTION: Kind[Placed] = Kind(
    name=lambda placed: placed[1].topic_filter,
    describe=tell_subscription,
    figures={
        "waiting": lambda placed: waiting_of(placed[1]),
        "client": lambda placed: placed[0],
        "qos": lambda placed: placed[1].qos,
        "inflight": lambda placed: placed[1].inflight,
        "next_offset": lambda placed: placed[1].next_offset,
        "light_queue": lambda placed: placed[1].light_queue,
    },
    find_key=lambda _column: None,  # all others are by the filter: its own, and what no subscription has
)

SESSION: Kind[SessionEntry] = Kind(
    name=lambda entry: entry.client,
    describe=tell_session,
    figures={
        "user": lambda entry: entry.user or "",
        "connected": lambda entry: entry.is_connected,
        "persistent": lambda entry: entry.is_persistent,
        "subscriptions": lambda entry: entry.subscriptions,
        "inflight": lambda entry: entry.inflight,
        "redelivered": lambda entry: entry.redelivered,
    },
)
