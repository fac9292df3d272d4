"""Which messages of a batch are traced: those of a trace that its publisher had sampled, and a part of the others.

A publisher says so by the property `traceparent` (W3C Trace Context), which each door carries as any other.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_right

from core.message import PublishBatch

PARENT = b"traceparent"
STATE = b"tracestate"
BATCH_MAX = 64  # messages of one batch that are traced; chosen: each span is an object, which batches otherwise avoid
_NEEDLE = PARENT + b"\x01"
_NEVER = 1 << 62


class Choice:
    """Chooses; messages with a `traceparent` by what it says, the others at random.

    Args:
        ratio: The part of those that have none.
        rng: What chance is.
    """

    def __init__(self, ratio: float, rng: random.Random | None = None) -> None:
        self._ratio = ratio
        self._rng = rng or random.Random()  # noqa: S311 - nothing secret
        self._left = self._gap()  # messages that are passed over before the next one

    def _gap(self) -> int:
        """Return how many are passed over between two: so chance is asked once for each that is taken."""
        if self._ratio <= 0:
            return _NEVER
        if self._ratio >= 1:
            return 0
        return int(math.log(1.0 - self._rng.random()) / math.log(1.0 - self._ratio))

    def choose(self, batch: PublishBatch) -> dict[int, tuple[str, str]]:
        """Return the messages to be traced, each with what it says of its trace and of its state; empty: nothing."""
        said = _find_parents(batch)
        chosen = {i: words for i, words in said.items() if _is_sampled(words[0])}
        at = self._left
        while at < batch.count:
            if at not in said and len(chosen) < BATCH_MAX:
                chosen[at] = ("", "")
            at += 1 + self._gap()
        self._left = at - batch.count
        return chosen


def _is_sampled(parent: str) -> bool:
    return len(parent) >= 55 and parent[53:55].isalnum() and int(parent[53:55], 16) & 1 == 1  # noqa: PLR2004 - the format


def _find_parents(batch: PublishBatch) -> dict[int, tuple[str, str]]:
    """Return the messages that name their trace; one look at all properties where there is none."""
    extra = batch.extra
    data = extra if isinstance(extra, bytes | bytearray) else bytes(extra)
    found: dict[int, tuple[str, str]] = {}
    pos = data.find(_NEEDLE)
    if pos < 0:
        return found
    starts = batch.extra_start[: batch.count]
    while pos >= 0 and len(found) < BATCH_MAX:
        i = bisect_right(starts, pos) - 1
        if i >= 0 and pos < batch.extra_end[i] and (pos == starts[i] or data[pos - 1] == 2):  # noqa: PLR2004 - the separator
            value = _value_at(data, pos + len(_NEEDLE), batch.extra_end[i])
            state = data.find(b"\x02" + STATE + b"\x01", starts[i], batch.extra_end[i])
            told = _value_at(data, state + len(STATE) + 2, batch.extra_end[i]) if state >= 0 else ""
            found[i] = (value, told)
        pos = data.find(_NEEDLE, pos + 1)
    return found


def _value_at(data: bytes | bytearray, start: int, limit: int) -> str:
    end = data.find(b"\x02", start, limit)
    return bytes(data[start : end if end >= 0 else limit]).decode(errors="replace")
