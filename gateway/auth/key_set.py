"""Keeps a key set that is somewhere on the web: asked for at intervals, and when a token names a key that is not in it.

Source: RFC 7517; RFC 9110, section 13.1.2 (If-None-Match); RFC 9111, section 5.2.2.1 (max-age).
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable

from gateway.auth.backends.http_client import HttpClient
from gateway.auth.backends.question import BackendError
from gateway.logs import said
from gateway.runtime.loop import Clock
from gateway.settings.jwt import JwtSettings
from gateway.settings.models import SettingsError

LOGGER = logging.getLogger(__name__)

SET_BYTES_MAX = 1024 * 1024  # far more than the keys of a set take
TIMEOUT_S = 10  # chosen: a key set is a small file; logins that need it wait so long at most
AGAIN_MS = 30_000  # between two questions for keys that are not in the set: anybody can name one
WAITING_MAX = 1_024  # logins that wait for an answer, as many as wait for a check of their passwords
FRESH_S_MIN = 60  # however short a time the server says
RETRY_S = (1, 2, 5, 10, 30)  # after failures, the last one again and again
OK, NOT_MODIFIED = 200, 304
_MAX_AGE = re.compile(r"(?:^|[\s,])max-age\s*=\s*\"?(\d{1,9})")


class KeySet:
    """The newest set that could be used; a failure changes nothing.

    Args:
        settings: Where it is, and how often it is asked for.
        clock: The gateway's.
        take: Told the bytes of another set; raises SettingsError where they hold none that can be used.

    Raises:
        SettingsError: The certificates that are to be trusted cannot be read.
    """

    def __init__(self, settings: JwtSettings, clock: Clock, take: Callable[[bytes], None]) -> None:
        self.url = settings.jwks_url
        self._refresh_s = settings.jwks_refresh_s
        self._clock = clock
        self._take = take
        self._client = HttpClient(settings.jwks_url, settings.jwks_ca, SET_BYTES_MAX)
        self._etag = ""
        self._failures = 0
        self._asked_at_ms = -AGAIN_MS
        self._wanted: asyncio.Event | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_asking = False
        self._waiting: list[Callable[[], None]] = []

    def start(self) -> None:
        """Ask for the set, and go on at intervals."""
        if self._task is None:
            self._wanted = asyncio.Event()
            self._asked_at_ms = self._clock.now_ms()
            self._is_asking = True
            self._task = asyncio.get_running_loop().create_task(self._run())

    def stop(self) -> None:
        """Ask no more; those that wait are told."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self._client.close()
        self._tell()

    def may_ask(self) -> bool:
        """Return whether the set is being asked for, or may be asked for once more: not where that was done lately."""
        if self._task is None or len(self._waiting) >= WAITING_MAX:
            return False
        return self._is_asking or self._clock.now_ms() - self._asked_at_ms >= AGAIN_MS

    def ask(self, then: Callable[[], None]) -> bool:
        """Ask for the set once more, where that may be, and call `then` when it was answered; return whether it may."""
        if not self.may_ask() or self._wanted is None:
            return False
        if not self._is_asking:
            self._asked_at_ms = self._clock.now_ms()
            self._is_asking = True
            self._wanted.set()
        self._waiting.append(then)
        return True

    def _tell(self) -> None:
        waiting, self._waiting = self._waiting, []
        for then in waiting:
            try:
                then()
            except Exception:
                LOGGER.exception("an error after a request for keys")

    async def _run(self) -> None:
        assert self._wanted is not None
        while True:
            self._wanted.clear()
            self._is_asking = True
            delay_s = await self._ask()
            self._is_asking = False
            self._tell()
            try:
                async with asyncio.timeout(delay_s):
                    await self._wanted.wait()
            except TimeoutError:
                continue

    async def _ask(self) -> float:
        """Ask once, and return how many seconds from now it is asked for again."""
        try:
            async with asyncio.timeout(TIMEOUT_S):
                headers = {"If-None-Match": self._etag} if self._etag else {}
                answer = await self._client.send("GET", headers=headers)
            if answer.status == OK:
                self._take(answer.body)
                self._etag = answer.headers.get("etag", "")
            elif answer.status != NOT_MODIFIED or not self._etag:
                return self._fail(f"its status is {answer.status}")
        except (BackendError, OSError, SettingsError) as error:  # a TimeoutError is an OSError
            return self._fail(str(error) or "no answer")
        except Exception:
            LOGGER.exception("a key set could not be asked for url=%s", self.url)
            return self._fail("it failed")
        if self._failures:
            LOGGER.info("keys of tokens are there again url=%s failed=%d", self.url, self._failures)
        self._failures = 0
        found = _MAX_AGE.search(answer.headers.get("cache-control", ""))
        return self._refresh_s if found is None else min(max(int(found[1]), FRESH_S_MIN), self._refresh_s)

    def _fail(self, why: str) -> float:
        self._failures += 1
        if self._failures == 1:
            LOGGER.warning("keys of tokens cannot be had, the last ones stay url=%s error=%s", self.url, said(why))
        return RETRY_S[min(self._failures, len(RETRY_S)) - 1]
