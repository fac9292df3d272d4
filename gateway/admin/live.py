"""What the gateway did in the last minutes, second by second, and a stream of it for pages that stay open."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections import deque
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from core.metrics import BridgeMetrics, SyncMetrics
from gateway.admin.list_changes import ListChanges
from gateway.admin.login import Caller
from gateway.admin.management.overview import describe_gateway, describe_state
from gateway.admin.view import AdminView

INTERVAL_S = 1.0  # chosen: a reader can follow figures that change so often
LOOK_S = 0.05  # how often the loop's delay is measured; chosen: twenty looks are in each sample
SAMPLES_MAX = 300  # what a page shows: five minutes
RATE_SAMPLES = 5  # over which rates are told, as RabbitMQ's console asks
FOLLOWED_MAX = 900  # samples of one stream, then a page asks again: its login may have ended
RETRY_MS = 500  # after which a page asks again whose stream ended
FOLLOWERS_MAX = 32  # a stream each; more than half of the door's connections stay for questions
_STATM = Path("/proc/self/statm")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
Sample = dict[str, Any]


class TooManyFollowersError(RuntimeError):
    """As many streams are open as there may be."""


class LiveFeed:
    """Takes a sample each second, keeps some minutes of them, and gives them to those that follow.

    Args:
        view: The gateway.
    """

    def __init__(self, view: AdminView) -> None:
        self._view = view
        self._samples: deque[Sample] = deque(maxlen=SAMPLES_MAX)
        self._following: set[asyncio.Future[None]] = set()
        self._followers = 0
        self._changes = ListChanges(view)
        self._is_open = True
        self._task: asyncio.Task[None] | None = None
        self._looking: dict[object, asyncio.Task[None]] = {}
        self._cpu_s = time.process_time()
        self._at_s = time.monotonic()
        self._syncs = (0, 0.0)
        self._passed: deque[tuple[float, int, int]] = deque(maxlen=RATE_SAMPLES + 1)

    def start(self) -> None:
        """Take samples from now on."""
        self._task = asyncio.create_task(self._run(), name="live")

    def stop(self) -> None:
        """Take none any more, and end the streams."""
        self._is_open = False
        self._view.rosters.stop()
        self._wake()
        if self._task is not None:
            self._task.cancel()
            self._task = None
        for looking in self._looking.values():
            looking.cancel()

    def follow(self, caller: Caller | None = None) -> AsyncIterator[str]:
        """Return events for a page: `history`, what is known, then `sample` for each new one.

        Args:
            caller: One that is not told of everything gets the totals of its own virtual hosts. None: all.

        Raises:
            TooManyFollowersError: As many follow as may.
        """
        if self._followers >= FOLLOWERS_MAX:
            raise TooManyFollowersError
        return self._tell(None if caller is None or caller.sees_all else caller)

    async def _tell(self, caller: Caller | None) -> AsyncIterator[str]:
        self._followers += 1
        try:
            known = list(self._samples) if caller is None else [await self._measure_own(caller)]
            yield f"retry: {RETRY_MS}\n{_event('history', known)}"
            for _ in range(FOLLOWED_MAX):
                if not self._is_open:
                    return
                turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._following.add(turn)
                await turn
                if self._is_open:  # one that was slow misses samples, and never has more than one to wait for
                    yield _event("sample", self._samples[-1] if caller is None else await self._measure_own(caller))
        finally:
            self._followers -= 1

    async def _run(self) -> None:
        while True:
            late_s = 0.0
            for _ in range(round(INTERVAL_S / LOOK_S)):
                before = time.monotonic()
                await asyncio.sleep(LOOK_S)
                late_s = max(late_s, time.monotonic() - before - LOOK_S)
            self.take(late_s)
            self._view.rosters.tend()
            for look in (self._view.activity, self._view.held_looks):
                if look.is_due():
                    self._looking[look] = asyncio.create_task(look.look(), name="look")

    def take(self, late_s: float) -> None:
        """Take a sample; the loop came back `late_s` seconds late at most since the last one."""
        self._view.loop_delay_s = max(late_s, 0.0)
        self._view.rates = self._find_rates()
        self._samples.append(self._measure(late_s))
        self._wake()

    def _find_rates(self) -> tuple[float, float]:
        """Return how many messages a second came in and went out of late."""
        doors = self._view.broker.metrics.doors.values()
        now_s, came, went = (
            time.monotonic(),
            sum(one.messages_in for one in doors),
            sum(one.messages_out for one in doors),
        )
        self._passed.append((now_s, came, went))
        from_s, came_then, went_then = self._passed[0]
        passed_s = max(now_s - from_s, 1e-3)
        return round((came - came_then) / passed_s, 1), round((went - went_then) / passed_s, 1)

    def _measure(self, late_s: float) -> Sample:
        now_s, cpu_s, sync = time.monotonic(), time.process_time(), self._view.broker.metrics.sync
        passed_s = max(now_s - self._at_s, 1e-3)
        sample: Sample = {
            **describe_gateway(self._view).model_dump(),
            "bridges": {name: _tell_bridge(bridge) for name, bridge in self._view.broker.metrics.bridges.items()},
            "at_ms": int(time.time() * 1_000),
            "cpu_share": round((cpu_s - self._cpu_s) / passed_s, 4),
            "memory_bytes": int(_STATM.read_text().split()[1]) * _PAGE_BYTES,
            "sync_ms": round(self._mean_sync_ms(sync), 3),
            "loop_ms": round(max(late_s, 0.0) * 1_000, 3),
        }
        if self._followers:
            sample["lists"] = self._changes.look()
        self._at_s, self._cpu_s, self._syncs = now_s, cpu_s, (sync.count, sync.total_ms)
        return sample

    async def _measure_own(self, caller: Caller) -> Sample:
        """Return what a caller is told of that sees its own virtual hosts alone."""
        totals = await self._view.totals.find()
        vhosts = [vhost for vhost in self._view.vhosts if caller.may_see_vhost(vhost.name)]
        return {
            **describe_state(self._view),
            "at_ms": int(time.time() * 1_000),
            "lists": dict(self._changes.numbers),
            "own": {
                "vhosts": sorted(vhost.name for vhost in vhosts),
                "queues": sum(map(len, vhosts)),
                **totals.within({vhost.name for vhost in vhosts})._asdict(),
            },
        }

    def _mean_sync_ms(self, sync: SyncMetrics) -> float:
        count, total_ms = self._syncs
        return (sync.total_ms - total_ms) / (sync.count - count) if sync.count > count else 0.0

    def _wake(self) -> None:
        following, self._following = self._following, set()
        for turn in following:
            if not turn.done():
                turn.set_result(None)


def _tell_bridge(bridge: BridgeMetrics) -> Sample:
    names = ("address", "is_connected", "cause", "connects", "failures", "messages_in", "messages_out", "dropped")
    return {name: getattr(bridge, name) for name in names}


def _event(name: str, data: object) -> str:
    """Return one event of a stream (WHATWG HTML, 9.2, server-sent events)."""
    return f"event: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n"
