"""The state of one pop queue as records that make it out of nothing, in parts, while its consumers go on.

What happens between two parts is noted behind them by the caller. So each part says how its messages are when
it is made: what was not said yet is said later, and what was said is changed by the notes.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.pop.changes import ChangeLog
from core.pop.inflight import InFlight

PART_MESSAGES = 2_048  # looked at in one part: about 0.03 ms compiled, 5 ms uncompiled


def snapshot_parts(state: InFlight, log: ChangeLog) -> Iterator[int]:
    """Put the state into `log`, part by part; give how many messages each part looked at."""
    window = state.window
    old = window.straggler_offsets()
    first, end = window.base, window.next_offset
    has_parts = len(old) + end - first > PART_MESSAGES
    state.write_floor(log, has_parts=has_parts)
    looked_at = 0
    for offset in old:
        state.write_states(log, offset, offset + 1)
        looked_at += 1
        if looked_at == PART_MESSAGES:
            yield looked_at
            looked_at = 0
    while first < end:
        until = min(first + PART_MESSAGES - looked_at, end)
        state.write_states(log, first, until)
        looked_at += until - first
        first = until
        if looked_at == PART_MESSAGES:
            yield looked_at
            looked_at = 0
    if has_parts:
        state.write_end(log)
    yield looked_at
