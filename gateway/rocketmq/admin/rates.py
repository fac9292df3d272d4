"""How many messages a second came in and went out, of late."""

from __future__ import annotations

from collections import deque

INTERVAL_MS = 10_000  # between two looks, as official brokers sample
SPANS = (1, 6, 60)  # looks back: 10 s, a minute, ten minutes


class Rates:
    """Two counters, looked at again and again."""

    def __init__(self) -> None:
        self._seen: deque[tuple[int, int, int]] = deque(maxlen=SPANS[-1] + 1)

    def note(self, came: int, went: int, now_ms: int) -> None:
        """Take note of the counters as they are now."""
        self._seen.append((now_ms, came, went))

    def came(self, now: int, now_ms: int) -> str:
        """Return what came in a second, over each span, where the counter is at `now`."""
        return self._rates(1, now, now_ms)

    def went(self, now: int, now_ms: int) -> str:
        """Return what went out a second, over each span."""
        return self._rates(2, now, now_ms)

    def _rates(self, which: int, now: int, now_ms: int) -> str:
        texts: list[str] = []
        for span in SPANS:
            seen = self._seen[max(len(self._seen) - span, 0)] if self._seen else (now_ms, now, now)
            passed_ms = now_ms - seen[0]
            texts.append(f"{(now - seen[which]) * 1000 / passed_ms if passed_ms > 0 else 0.0:.2f}")
        return " ".join(texts)
