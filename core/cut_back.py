"""Places of consumers behind the end of the log: a power cut may keep them and lose the messages that they passed.

The next messages get the same offsets, so each place goes back to the end of its queue before there are any, and that
is as safe as they are before they are called so: it could be lost by a second power cut.
"""

from __future__ import annotations

from functools import partial

from core.engine import Engine
from core.lmq.consumer_offsets import ConsumerOffsets
from core.pop.pop_service import PopService


def cut_back(engine: Engine, pop: PopService, offsets: ConsumerOffsets) -> None:
    """Have no pop queue and no group further than its queue goes, as soon as the end of that is known."""
    for key in pop.overrun():
        queue_ref = engine.intern_queue(key.partition(b"\0")[0])
        engine.open_queue(queue_ref, partial(_cut_back_pop, engine, pop, key))
    for group, key, offset in offsets.items():
        queue_ref = engine.find_queue(key)
        if queue_ref < 0 < offset:
            _set_offset(engine, offsets, group, key, 0)
        elif queue_ref >= 0 and offset > engine.max_offset(queue_ref):
            engine.open_queue(queue_ref, partial(_cut_back_offset, engine, offsets, group, key))


def _cut_back_pop(engine: Engine, pop: PopService, key: bytes, error: Exception | None) -> None:
    if error is None and pop.cut_back(key):
        keep_first(engine)


def _cut_back_offset(
    engine: Engine, offsets: ConsumerOffsets, group: bytes, key: bytes, error: Exception | None
) -> None:
    end = engine.max_offset(engine.find_queue(key))
    if error is None and (offsets.get(group, key) or 0) > end:
        _set_offset(engine, offsets, group, key, end)


def _set_offset(engine: Engine, offsets: ConsumerOffsets, group: bytes, key: bytes, end: int) -> None:
    offsets.commit(group, key, end)
    keep_first(engine)


def keep_first(engine: Engine) -> None:
    """Have all that was written so far durable before what is stored from now on is called safe."""
    engine.when_durable(_pass_over)


def _pass_over(error: Exception | None) -> None:  # noqa: ARG001  # nobody waits for it
    return
