"""Which messages a broker of MQTT 3.1.1 is to send back to the client that published them.

A broker that knows neither no local nor the bridges' bit gives each message to all subscribers of its topic, also to
the bridge that brought it. So each message that goes out to a topic that the bridge subscribes to is waited for, once.
A message that comes and is equal to a waited one counts as that one: where another client published the same at that
moment, the two cannot be told apart, and one of them is still let in.
"""

from __future__ import annotations

from collections import deque
from hashlib import blake2b

KEPT_S = 30.0  # a broker that has not sent it back by then has lost it, as it may at QoS 0
COUNT_MAX = 10_000  # that are waited for; the oldest give way
_DIGEST_BYTES = 16  # 128 bits: no two messages share one by chance


class Echo:
    """One message that is to come back."""

    __slots__ = ("digest", "is_kept", "is_sure", "is_waited_for", "until_s")

    def __init__(self, digest: bytes, until_s: float, *, is_kept: bool) -> None:
        self.digest = digest
        self.is_kept = is_kept  # it comes at QoS 1, where it is published so
        self.until_s = until_s
        self.is_sure = False  # it comes back also where the connection breaks
        self.is_waited_for = True


class Echoes:
    """All that one bridge waits for."""

    def __init__(self) -> None:
        self._by_digest: dict[bytes, deque[Echo]] = {}
        self._in_order: deque[Echo] = deque()

    def __len__(self) -> int:
        return len(self._in_order)

    def expect(self, topic: str, body: bytes, now_s: float, *, is_kept: bool) -> Echo:
        """Wait for a message that is about to be published."""
        self._drop_old(now_s)
        if len(self._in_order) >= COUNT_MAX:
            self._forget(self._in_order[0])
        echo = Echo(_digest(topic, body), now_s + KEPT_S, is_kept=is_kept)
        self._by_digest.setdefault(echo.digest, deque()).append(echo)
        self._in_order.append(echo)
        return echo

    def cancel(self, echo: Echo) -> None:
        """Wait for it no more: it was not published."""
        if echo.is_waited_for:
            self._forget(echo)

    def take(self, topic: str, body: bytes, now_s: float) -> bool:
        """Return whether a message that came was waited for, and wait for it no more."""
        self._drop_old(now_s)
        waiting = self._by_digest.get(_digest(topic, body))
        if not waiting:
            return False
        self._forget(waiting[0])
        return True

    def reconnect(self, now_s: float, *, is_resumed: bool) -> None:
        """Begin another connection: what is sure still comes, where the other broker has kept the session."""
        waiting, self._in_order = self._in_order, deque()
        self._by_digest.clear()
        for echo in waiting:
            echo.is_waited_for = is_resumed and echo.is_sure
            if echo.is_waited_for:
                echo.until_s = now_s + KEPT_S
                self._by_digest.setdefault(echo.digest, deque()).append(echo)
                self._in_order.append(echo)

    def _drop_old(self, now_s: float) -> None:
        while self._in_order and self._in_order[0].until_s <= now_s:
            self._forget(self._in_order[0])

    def _forget(self, echo: Echo) -> None:
        echo.is_waited_for = False
        self._in_order.remove(echo)
        waiting = self._by_digest[echo.digest]
        waiting.remove(echo)
        if not waiting:
            del self._by_digest[echo.digest]


def _digest(topic: str, body: bytes) -> bytes:
    return blake2b(topic.encode() + b"\0" + body, digest_size=_DIGEST_BYTES).digest()
