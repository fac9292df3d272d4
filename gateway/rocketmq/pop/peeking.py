"""Answers PEEK_MESSAGE: what a POP would give a group next, which stays for others to take.

Source: docs/protocols/rocketmq.md, "POP".
"""

from __future__ import annotations

from array import array
from functools import partial
from typing import Protocol

from core.broker import Broker
from core.errors import LmqError
from core.lmq.queue_name import is_light
from core.message import AWAY, StoredBatch
from gateway.rocketmq.consumer_manage import LateAnswer, LaterAnswered
from gateway.rocketmq.errors import CommandRefusedError
from gateway.rocketmq.fields import integer_field
from gateway.rocketmq.opened import open_queues
from gateway.rocketmq.picked_records import copied_bytes_max, copy_records, pick_all
from gateway.rocketmq.pop.claims import Claims
from gateway.rocketmq.pop.room import ALL_QUEUES
from gateway.rocketmq.pop.service import Popper, PopService
from gateway.rocketmq.pop.taking import BYTES_MAX, COUNT_MAX, NOTHING
from gateway.rocketmq.topic_table import queue_key
from lmq.remoting.commands import Command, answer
from lmq.remoting.response_codes import ResponseCode

QUEUES_MAX = 1_024  # looked at for one answer; chosen: a topic has some


class PeekPeer(Popper, LaterAnswered, Protocol):
    """The connection that a request came in by."""


class Peeker:
    """Shows what would be taken.

    Args:
        broker: Where the queues are.
        claims: What groups have taken.
        pops: Says which queues a request is about.
    """

    def __init__(self, broker: Broker, claims: Claims, pops: PopService) -> None:
        self._broker = broker
        self._claims = claims
        self._pops = pops
        self._batch = StoredBatch(COUNT_MAX)
        self._picked = array("i", bytes(4 * COUNT_MAX))

    def peek(self, popper: PeekPeer, request: Command, now_ms: int) -> None:
        """Answer with messages, as soon as they are here; with 19 where there are none.

        Raises:
            CommandRefusedError: It asks for what there is not.
        """
        count_max = integer_field(request, "maxMsgNums")
        if count_max > COUNT_MAX:
            raise CommandRefusedError(ResponseCode.INVALID_PARAMETER, f"the number of messages is over {COUNT_MAX}")
        place = self._pops.find_place(popper, request)
        all_queues = range(min(place.queue_count, QUEUES_MAX))
        numbers = all_queues if place.queue_id == ALL_QUEUES else (place.queue_id,)
        keys = [queue_key(place.topic, number) for number in numbers]
        there = [key for key in keys if self._broker.find_queue(key) >= 0]
        tell = partial(self._look, request, place.group, there, max(count_max, 1), now_ms)
        look = LateAnswer(self._broker, request, popper, tell)

        def go_on(error: LmqError | None) -> None:
            if error is None:
                look.on_ready(now_ms)
            else:
                popper.answer(request, answer(request, ResponseCode.SYSTEM_BUSY, str(error)))

        open_queues(self._broker, there, go_on)

    def _look(self, request: Command, group: bytes, keys: list[bytes], count_max: int, now_ms: int) -> Command | None:
        """Return the answer, None where something of it is on its way."""
        records: list[bytes] = []
        found = size = rest = 0
        for key in keys:
            ready = self._count_ready(group, key)
            rest += ready
            if ready and found < count_max and size < BYTES_MAX:
                seen = self._read(group, key, count_max - found, now_ms)
                if seen is None:
                    return None
                records.append(seen[0])
                found += seen[1]
                size += len(seen[0])
        ext = {"popTime": str(now_ms), "invisibleTime": "0", "reviveQid": "0", "restNum": str(rest)}
        if not found:
            return answer(request, ResponseCode.PULL_NOT_FOUND, NOTHING, ext=ext)
        return answer(request, ResponseCode.SUCCESS, "FOUND", ext=ext, body=b"".join(records))

    def _count_ready(self, group: bytes, key: bytes) -> int:
        taken = self._claims.find(group, key)
        if taken is not None:
            return max(taken.ready_count, 0)
        ref = self._broker.find_queue(key)
        return max(self._broker.max_offset(ref) - self._start_of(group, key, ref), 0)

    def _start_of(self, group: bytes, key: bytes, ref: int) -> int:
        """Return where a group begins that never took any: a look makes no beginning."""
        committed = self._broker.consumer_offsets.get(group, key)
        return max(committed or 0, self._broker.min_offset(ref))

    def _read(self, group: bytes, key: bytes, count_max: int, now_ms: int) -> tuple[bytes, int] | None:
        """Return the records of some messages and how many they are, None while they are on their way."""
        batch = self._batch
        taken = self._claims.find(group, key)
        if taken is not None:
            found = taken.peek(batch, count_max)
        else:
            ref = self._broker.find_queue(key)
            found = self._broker.read(ref, self._start_of(group, key, ref), batch, count_max, BYTES_MAX)
        if found == AWAY:
            return None
        self._broker.lifetimes.take_expired(batch, key, now_ms)
        count = min(pick_all(batch, self._picked), count_max)
        light_name = key if is_light(key) else b""
        out = bytearray(copied_bytes_max(batch, self._picked, count, light_name))
        size = copy_records(batch, self._picked, count, light_name, out, 0)
        batch.clear()
        return bytes(out[:size]), count
