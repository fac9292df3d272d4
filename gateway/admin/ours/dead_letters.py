"""Where dead letters lie: AMQP queues that other queues' dead letters go to, and RocketMQ's topics of dead letters."""

from __future__ import annotations

from typing import Any

from fastapi import Response

from gateway.admin.asking import open_queue
from gateway.admin.login import Looker
from gateway.admin.management.listing import Asked, Item, Kind, answer_list
from gateway.admin.management.places import Scope, find_scope, find_vhosts
from gateway.admin.ours.reading import read_one
from gateway.admin.queue_ends import find_ends_of
from gateway.admin.routes import Routes
from gateway.admin.steps import walk
from gateway.admin.view import AdminView, View
from gateway.amqp.inventory import count_messages
from gateway.amqp.letter_queues import find_letter_queues
from gateway.inventory import text_of
from gateway.rocketmq.topic_table import DEAD_PREFIX

DEAD_LETTERS = Routes()
SOURCES_MAX = 20  # queues told by name that send theirs to one; chosen: what a row can show
Senders = dict[tuple[str, str], list[str]]  # by virtual host and queue: the queues that send theirs there


@DEAD_LETTERS.get("/dead-letters")
async def list_dead_letters(view: View, looker: Looker, asked: Asked) -> Response:
    """The queues that dead letters come to, with what they hold; `from` are queues or groups whose letters they are.

    Of RocketMQ's, those are told that were not sent back; they begin at `next_offset` of the light queue.
    """
    scope = find_scope(view, looker, None)
    found = [_tell_amqp(view, *one) for one in (await _find_graves(view, scope)).items()]
    async for queue_ref in walk(view.rocketmq.inventory().queue_refs() if scope is None else ()):
        key = view.broker.queue_key(queue_ref)
        if key.startswith(DEAD_PREFIX):
            await open_queue(view.broker, queue_ref)
            found.append(await _tell_rocketmq(view, key.rpartition(b"/")[0]))
    return await answer_list(asked, KIND, [item for item in found if item is not None])


async def _find_graves(view: AdminView, scope: Scope) -> Senders:
    """Return the queues that letters of each queue may come to, by any routing key where it names none."""
    graves: Senders = {}
    reached: dict[tuple[str, str], list[str]] = {}
    for vhost in find_vhosts(view, scope):
        async for queue in walk(queue if queue.has_dead_letters else None for queue in vhost):
            for name in find_letter_queues(vhost, queue, reached):
                graves.setdefault((vhost.name, name), []).append(queue.name)
    return graves


def _tell_amqp(view: AdminView, place: tuple[str, str], senders: list[str]) -> Item | None:
    vhost = view.vhosts.find(place[0])
    queue = None if vhost is None else vhost.find(place[1])
    if vhost is None or queue is None:
        return None
    ready, unacked = count_messages(view.broker, vhost, queue)
    return {
        "name": queue.name,
        "vhost": vhost.name,
        "door": "amqp",
        "light_queue": text_of(queue.light_name),
        "messages": ready + unacked,
        "oldest_at_ms": find_ends_of(view.broker, vhost, queue).oldest_at_ms,
        "from": senders[:SOURCES_MAX],
        "from_count": len(senders),
    }


async def _tell_rocketmq(view: AdminView, topic: bytes) -> Item | None:
    waiting = view.rocketmq.letters.find(topic)
    if waiting is None or waiting.queue_ref < 0:
        return None
    first = None
    if waiting.first < waiting.end:
        first = await read_one(view.broker, waiting.queue_ref, waiting.first)
    return {
        "name": text_of(topic),
        "vhost": "",
        "door": "rocketmq",
        "light_queue": text_of(waiting.key),
        "messages": waiting.end - waiting.first,
        "oldest_at_ms": None if first is None else first.store_ms[0],
        "from": [text_of(topic.removeprefix(DEAD_PREFIX))],
        "from_count": 1,
        "next_offset": waiting.first,
    }


def _name_of(item: Any) -> str:  # noqa: ANN401 - an item is a dict of anything
    return str(item["name"])


KIND: Kind[Item] = Kind(name=_name_of, describe=lambda item: item)
