"""Groups: RocketMQ's, and those of MQTT's shared subscriptions; how far each is, and where one goes on."""

from __future__ import annotations

import time
from itertools import chain
from typing import Annotated, Literal

from fastapi import Query, Response
from pydantic import BaseModel, Field, model_validator

from gateway.admin.asking import open_queue
from gateway.admin.login import Administrator, Looker
from gateway.admin.management.failures import bad_request, not_found
from gateway.admin.management.listing import Asked, Item, Kind, answer_list
from gateway.admin.ours.light_queues import get_light_queue
from gateway.admin.ours.reading import find_offset
from gateway.admin.paths import PathName
from gateway.admin.routes import Routes
from gateway.admin.steps import walk
from gateway.admin.view import AdminView, View, of_users
from gateway.inventory import GroupEntry
from gateway.rocketmq.moved_places import note_moved
from gateway.rocketmq.topic_table import DEAD_PREFIX, queue_key

GROUPS = Routes()
MEMBERS_MAX = 100  # told by name; chosen: what a page can show
GroupDoor = Literal["mqtt", "rocketmq"]
Whole = Annotated[int | None, Field(ge=0, le=2**62)]


class ResetBody(BaseModel):
    """Where a group is to go on in a queue: at an offset, or at what was stored from a moment on."""

    queue: Annotated[str, Field(min_length=1, max_length=1_000)]
    offset: Whole = None
    at_ms: Whole = None

    @model_validator(mode="after")
    def _check_one(self) -> ResetBody:
        if (self.offset is None) == (self.at_ms is None):
            raise ValueError("give offset or at_ms")
        return self


@GROUPS.get("/groups")
async def list_groups(
    view: View,
    looker: Looker,
    asked: Asked,
    *,
    door: Annotated[GroupDoor | None, Query()] = None,
    internal: Annotated[bool, Query()] = False,
) -> Response:
    """The groups of RocketMQ's consumers and of MQTT's shared subscriptions, each with its queues and its lag there.

    `redelivered` counts the messages that a group was given once more since the start: at RocketMQ by POP or from its
    retry topic, at MQTT what a member of a `$share` group got after another one had it, for as long as the group is.
    `internal` has the gateway's own among them: those that keep how far timed messages, transactions
    and dead letters that were sent back are.
    A caller that does not see all is told of none.
    """
    if not looker.sees_all:
        return await answer_list(asked, GROUP, ())
    doors = [one for name, one in view.doors.items() if door in {None, name}]
    groups = chain.from_iterable(one.inventory().groups() for one in doors)
    return await answer_list(asked, GROUP, groups if internal else of_users(groups))


@GROUPS.get("/groups/{group}")
async def show_group(
    view: View, looker: Looker, group: PathName, *, door: Annotated[GroupDoor | None, Query()] = None
) -> Item:
    """One group: its members, and how far it is on each of its queues.

    `members` counts connected clients, `member_names` are the first hundred of them. `lag` and `redelivered` are sums
    of `queue_details`. `retries_max` and `dead_letters` are RocketMQ's, null at MQTT: how often a message is given once
    more before it is a dead letter, and how many of these were not sent back. `door` is needed where the groups of two
    doors have the name.
    """
    doors = [name for name in view.doors if door in {None, name}] if looker.sees_all else []
    found = [one for name in doors if (one := await _show(view, name, group)) is not None]
    if not found:
        raise not_found(f"no group '{group}'" + (f" at the door {door}" if door else ""))
    if len(found) > 1:
        raise bad_request(
            f"several doors have a group '{group}': give the door ({', '.join(a['door'] for a in found)})"
        )
    return found[0]


async def _show(view: AdminView, door: str, group: str) -> Item | None:
    """Return a group of a door; None where no member of it is connected and no place of it is known."""
    inventory = view.doors[door].inventory()
    its = (entry if entry is not None and entry.group == group else None for entry in inventory.groups())
    queues = [_tell(entry) async for entry in walk(its)]
    members = list({name: None async for name in walk(inventory.group_members(group))})
    if not queues and not members:
        return None
    is_rocketmq = door == view.rocketmq.name
    return {
        "door": door,
        "group": group,
        "members": len(members),
        "member_names": members[:MEMBERS_MAX],
        "lag": sum(queue["lag"] for queue in queues),
        "redelivered": sum(queue["redelivered"] for queue in queues),
        "retries_max": max(view.rocketmq.groups.get(group.encode()).retryMaxTimes, 0) if is_rocketmq else None,
        "dead_letters": await _count_letters(view, group.encode()) if is_rocketmq else None,
        "queue_details": queues,
    }


async def _count_letters(view: AdminView, group: bytes) -> int:
    """Return how many dead letters of a group were not sent back."""
    topic = DEAD_PREFIX + group
    queue_ref = view.broker.find_queue(queue_key(topic, 0))
    if queue_ref < 0:
        return 0
    await open_queue(view.broker, queue_ref)
    waiting = view.rocketmq.letters.find(topic)
    return 0 if waiting is None else waiting.end - waiting.first


@GROUPS.post("/groups/{group}/reset")
async def reset_group(view: View, administrator: Administrator, group: PathName, wanted: ResetBody) -> Item:
    """Have a group of RocketMQ go on elsewhere in a queue; its members do so when they ask for their place again."""
    del administrator
    broker = view.broker
    key = wanted.queue.encode()
    before = broker.consumer_offsets.get(group.encode(), key)
    if before is None:
        await _refuse_shared(view, group)
        get_light_queue(broker, wanted.queue)
        raise not_found(f"group '{group}' has no place on '{wanted.queue}'")
    queue_ref = broker.find_queue(key)
    offset = 0  # where nothing came yet
    if queue_ref >= 0:
        await open_queue(broker, queue_ref)
        offset = wanted.offset if wanted.offset is not None else await find_offset(broker, queue_ref, wanted.at_ms or 0)
        offset = max(broker.min_offset(queue_ref), min(offset, broker.max_offset(queue_ref)))
    note_moved(broker, group.encode(), key, offset, time.time_ns() // 1_000_000)
    broker.consumer_offsets.commit(group.encode(), key, offset)
    view.rocketmq.claims.reset(group.encode(), key, offset)
    return {"group": group, "queue": wanted.queue, "next_offset": offset}


async def _refuse_shared(view: AdminView, group: str) -> None:
    async for entry in walk(view.mqtt.inventory().groups()):
        if entry.group == group:
            raise bad_request(
                f"group '{group}' is one of MQTT's shared subscriptions: it goes on where its members are"
            )


def _tell(entry: GroupEntry) -> Item:
    return {
        "door": entry.door,
        "group": entry.group,
        "queue": entry.topic,
        "next_offset": entry.next_offset,
        "lag": entry.lag,
        "members": entry.members,
        "redelivered": entry.redelivered,
        "light_queue": entry.light_queue,
    }


GROUP: Kind[GroupEntry] = Kind(
    name=lambda entry: entry.group,
    describe=_tell,
    figures={
        "door": lambda entry: entry.door,
        "lag": lambda entry: entry.lag,
        "redelivered": lambda entry: entry.redelivered,
    },
)
