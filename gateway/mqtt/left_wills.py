"""Wills that a killed process left, of clients whose rights a back end knows, or the issuer of their tokens.

Each is published once the very back end that let its client in says that it may be, and not before. Until there is an
answer the will stays written down.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

from gateway.address import unpack_host
from gateway.auth.authenticator import Authenticator
from gateway.auth.credentials import Credentials, Identity, Refusal
from gateway.auth.left_logins import find_left
from gateway.auth.permissions import Permissions
from gateway.auth.topic_rights import PUBLISH
from gateway.mqtt.login import PROTOCOL
from gateway.mqtt.session_rows import StoredWill
from gateway.mqtt.topics import split_delayed

AGAIN_MS = (1_000, 2_000, 5_000, 10_000, 30_000)  # after as many questions without an answer in a row
TOGETHER_MAX = 16  # questions under way; chosen: a back end is asked for logins, too
WILLS_A_STEP = 128  # that are published in one turn, where none of them asks anything; chosen, as dead letters

Publish = Callable[[StoredWill, Permissions | None, int], None]


class Waiting(NamedTuple):
    """A will that is due; `has_row`: it is the one that is written down for its client."""

    stored: StoredWill
    has_row: bool


def find_login(authenticator: Authenticator, stored: StoredWill) -> Identity | Refusal:
    """Return the login of the client of a will, as it counts now."""
    peer = unpack_host(stored.host)
    who = Credentials(PROTOCOL, stored.user.decode(), None, peer, client=stored.client_id.decode())
    return find_left(authenticator, who, stored.login)


class LeftWills:
    """Those that are due, and were not published yet.

    Args:
        authenticator: Knows which back end or issuer vouches for which client.
        publish: Publishes a will, or logs that it may not be.
        forget: Removes the row of a will.
        clock_ms: Returns the present moment.
    """

    def __init__(
        self,
        authenticator: Authenticator,
        publish: Publish,
        forget: Callable[[StoredWill], None],
        clock_ms: Callable[[], int],
    ) -> None:
        self._authenticator = authenticator
        self._publish = publish
        self._forget = forget
        self._clock_ms = clock_ms
        self._waiting: dict[bytes, Waiting] = {}  # by client, also those that are asked about
        self._asking: dict[bytes, asyncio.Task[None]] = {}
        self._failures = 0  # in a row
        self._next_at_ms = 0
        self._is_stopped = False

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, stored: StoredWill) -> None:
        """Have a will published as soon as it is known that it may be."""
        self._waiting[stored.client_id] = Waiting(stored, has_row=True)

    def come_back(self, client_id: bytes, user: bytes) -> None:
        """Forget the will of a client that has come back: what it says is not so any more."""
        waiting = self._waiting.get(client_id)
        if waiting is not None and waiting.stored.user == user:
            self._end(waiting)

    def lose_row(self, client_id: bytes) -> StoredWill | None:
        """Take note that another will is written down for a client of that name now; return the one that was."""
        waiting = self._waiting.get(client_id)
        if waiting is None or not waiting.has_row:
            return None
        self._waiting[client_id] = waiting._replace(has_row=False)
        return waiting.stored

    def look(self, now_ms: int) -> None:
        """Go on with those that are not asked about, as many as may be at once; more in the next turn."""
        if now_ms < self._next_at_ms or self._is_stopped:
            return
        some = list(islice((key for key in self._waiting if key not in self._asking), WILLS_A_STEP))
        for client_id in some:
            if len(self._asking) >= TOGETHER_MAX:
                return  # an answer is followed by another look
            self._begin(self._waiting[client_id], now_ms)
        if len(some) == WILLS_A_STEP:
            asyncio.get_running_loop().call_soon(self._look_again)

    def _look_again(self) -> None:
        self.look(self._clock_ms())

    def _begin(self, waiting: Waiting, now_ms: int) -> None:
        stored = waiting.stored
        answer = find_login(self._authenticator, stored)
        if isinstance(answer, Identity) and answer.topics is not None:
            task = asyncio.get_running_loop().create_task(self._ask(waiting, answer))
            self._asking[stored.client_id] = task
        elif answer is Refusal.BUSY:
            self._put_off(now_ms)
        else:
            self._publish(stored, answer.may if isinstance(answer, Identity) else None, now_ms)
            self._end(waiting)

    async def _ask(self, waiting: Waiting, identity: Identity) -> None:
        stored = waiting.stored
        assert identity.topics is not None
        answer = None
        try:
            answer = await identity.topics.ask_one((PUBLISH, split_delayed(stored.will.topic)[1]))
        finally:
            self._asking.pop(stored.client_id, None)
        now_ms = self._clock_ms()
        latest = self._waiting.get(stored.client_id)
        if latest is None or latest.stored is not stored:
            return  # its client is back
        if answer is None:
            self._put_off(now_ms)
            return
        self._failures = 0
        self._publish(stored, identity.may, now_ms)
        self._end(latest)
        self.look(now_ms)

    def _put_off(self, now_ms: int) -> None:
        """Wait before the next questions: one was not answered."""
        if now_ms >= self._next_at_ms:  # else others that were under way, too
            self._next_at_ms = now_ms + AGAIN_MS[min(self._failures, len(AGAIN_MS) - 1)]
            self._failures += 1

    def _end(self, waiting: Waiting) -> None:
        del self._waiting[waiting.stored.client_id]
        if waiting.has_row:
            self._forget(waiting.stored)

    def stop(self) -> None:
        """Ask nothing more; what was not answered stays written down."""
        self._is_stopped = True
        for task in self._asking.values():
            task.cancel()
