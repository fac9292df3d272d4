"""RocketMQ's dead letters that are sent back: a copy of each goes to its group's retry topic, or to a topic for all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from fastapi import HTTPException

from core.errors import LmqError, MessageTooLargeError
from core.lmq.queue_name import is_light
from core.message import StoredBatch
from gateway.admin.asking import ask, begin_asking, read_on
from gateway.admin.login import Caller
from gateway.admin.management.failures import bad_request, busy, not_found
from gateway.admin.management.listing import Item
from gateway.admin.steps import Steps
from gateway.admin.view import AdminView
from gateway.inventory import text_of
from gateway.rocketmq.errors import CommandRefusedError
from gateway.rocketmq.letters import Waiting
from gateway.rocketmq.name_rights import may_read, may_write
from gateway.rocketmq.topic_table import DEAD_PREFIX, NOT_SENDABLE, RETRY_PREFIX, queue_key

BATCH_COUNT = 64  # copies that are stored before the first of them is waited for, so that one sync is for many
REASONS_MAX = 20  # told; chosen: what a page can show
Letter = tuple[int, bytes]  # its offset and its record
Outcome = asyncio.Future[LmqError | None] | MessageTooLargeError  # whether a copy is stored, or why none can be
Store = Callable[[bytes, int], int]  # a record and the moment, to the ticket of its copy


async def send_letters_back(view: AdminView, caller: Caller, name: str, to: str | None, count_max: int) -> Item:
    """Send the first letters of a topic `%DLQ%group` back, in order; return how many.

    Each counts as sent back when its copy is as safe as the settings say: a gateway that is killed between the two
    sends it again. Letters that come meanwhile stay. One whose copy no record can hold is passed over: it is counted as
    `left`, `reasons` says why, and it waits no more, but is on its topic as all the others are.

    Raises:
        HTTPException: 404: no such topic. 409: another request sends them back already. 503: the gateway takes no
            messages now. 400: the destination is none, or the group would not read them. 401: rights are missing.
    """
    topic = name.removesuffix("/0").encode()
    group = topic.removeprefix(DEAD_PREFIX)
    letters = view.rocketmq.letters
    if not topic.startswith(DEAD_PREFIX):
        raise bad_request(f"'{name}' is not a topic of dead letters: give %DLQ% and a group")
    waiting = letters.find(topic)
    if waiting is None:
        raise not_found(f"no topic '{text_of(topic)}'")
    destination = None if to is None else _find_topic(view, to)
    if destination is None and not _reads_retries(view, group):
        shown = text_of(group)
        raise bad_request(f"members of group '{shown}' do not read '%RETRY%{shown}': name a topic, for all its groups")
    target = destination or RETRY_PREFIX + group
    may, parent = caller.may, view.broker.parent_topic
    caller.check(f"read access to '{text_of(topic)}'", is_allowed=may_read(may, parent, topic))
    caller.check(f"write access to '{text_of(target)}'", is_allowed=may_write(may, target))
    if topic in letters.moving:
        raise HTTPException(409, {"error": "conflict", "reason": f"letters of '{text_of(topic)}' are being sent back"})
    letters.moving.add(topic)
    errand = _Errand(view, topic, destination)
    try:
        await errand.run(waiting.queue_ref, count_max)
    finally:
        letters.moving.discard(topic)
    return {"moved": errand.moved, "left": errand.left, "reasons": errand.reasons}


def _find_topic(view: AdminView, name: str) -> bytes:
    """Return a topic that letters may be sent to."""
    topic = name.encode()
    if is_light(topic) or topic in NOT_SENDABLE or topic == view.broker.parent_topic:
        raise bad_request(f"'{name}' is not a topic of RocketMQ clients")
    if view.rocketmq.topics.find(topic) is None:
        raise not_found(f"no topic '{name}'")
    return topic


def _reads_retries(view: AdminView, group: bytes) -> bool:
    """Return whether a group reads its retry topic, as push consumers do: one that only takes by POP may not."""
    retry = RETRY_PREFIX + group
    live = view.rocketmq.clients.find_group(text_of(group))
    if live is not None and live.subscriptions:
        return text_of(retry) in live.subscriptions
    taken = view.rocketmq.claims.queues_of(group)
    knows = view.broker.consumer_offsets.get(group, queue_key(retry, 0)) is not None
    return knows or not taken or any(key.startswith(retry + b"/") for key in taken)


class _Errand:
    """One errand."""

    def __init__(self, view: AdminView, topic: bytes, destination: bytes | None) -> None:
        self._view = view
        self._broker = view.broker
        self._letters = view.rocketmq.letters
        self._topic = topic
        backs, group = view.rocketmq.backs, topic.removeprefix(DEAD_PREFIX)
        self._store: Store = (
            (lambda record, now_ms: backs.revive(record, group, now_ms))
            if destination is None
            else (lambda record, now_ms: backs.resend(record, destination, now_ms))
        )
        self.moved = 0
        self.left = 0
        self.reasons: list[str] = []

    async def run(self, queue_ref: int, count_max: int) -> None:
        """Send back what waits now, so many at most, with those that are passed over."""
        if queue_ref < 0:
            return
        self._check(await ask(partial(self._broker.open_queue, queue_ref)))
        waiting = self._letters.find(self._topic)
        while waiting is not None and waiting.first < waiting.end and self.moved + self.left < count_max:
            found = await self._read(waiting, min(BATCH_COUNT, count_max - self.moved - self.left))
            if not found:
                break
            waiting = waiting._replace(first=await self._send(found))

    async def _read(self, waiting: Waiting, count_max: int) -> list[Letter]:
        batch = StoredBatch(count_max)
        count = await read_on(self._broker, waiting.queue_ref, waiting.first, batch)
        found = [
            (batch.queue_offset[i], bytes(batch.buf[batch.record_start[i] : batch.record_end[i]]))
            for i in range(max(count, 0))
            if batch.queue_offset[i] < waiting.end
        ]
        batch.clear()
        return found

    async def _send(self, found: list[Letter]) -> int:
        """Store copies of letters, and count those as sent back that are safe; return where to go on."""
        copies, failure = await self._copy(found)
        next_offset, moved, passed = found[0][0], 0, []
        for offset, outcome in copies:
            if isinstance(outcome, MessageTooLargeError):
                passed.append(f"the letter at offset {offset}: {outcome}")
            else:
                failure = await outcome or failure
                if outcome.result() is not None:
                    break
                moved += 1
            next_offset = offset + 1
        if moved or passed:
            self._check(await ask(self._broker.when_kept))  # a retry topic of several queues is a row of a table
            self._letters.note_sent(self._topic, next_offset)
            self.moved += moved
            self.left += len(passed)
            self.reasons += passed[: REASONS_MAX - len(self.reasons)]
            self._check(await ask(self._broker.when_durable))
        self._check(failure)
        return next_offset

    async def _copy(self, found: list[Letter]) -> tuple[list[tuple[int, Outcome]], Exception | None]:
        """Begin to store copies; return the outcome of each, up to the first that fails, as later ones would too."""
        copies: list[tuple[int, Outcome]] = []
        steps = Steps()
        for offset, record in found:
            try:
                ticket = self._store(record, self._view.begin_read(0))
            except MessageTooLargeError as error:
                copies.append((offset, error))
            except (CommandRefusedError, LmqError) as error:
                return copies, error
            else:
                copies.append((offset, begin_asking(partial(self._broker.when_stored, ticket))))
            await steps.rest()
        return copies, None

    def _check(self, failure: Exception | None) -> None:
        """Refuse to go on.

        Raises:
            HTTPException: 503.
        """
        if failure is not None:
            raise busy(f"moved {self.moved}, then: {failure}")
