from __future__ import annotations

import pytest

from core.engine import Engine
from core.message import PublishBatch, StoredBatch
from core.room import Room


@pytest.mark.parametrize(
    "ask",
    [
        lambda engine: engine.intern_queue(b"%LMQ%q"),
        lambda engine: engine.append_batch(PublishBatch(1), 0),
        lambda engine: engine.read(0, 0, StoredBatch(1), 1, 1),
        lambda engine: engine.when_stored(0, lambda _: None),
        lambda engine: engine.step(0),
        lambda engine: engine.figures(),
    ],
)
def test_engine_itself_keeps_nothing(ask):
    engine = Engine(Room(0), 1_000)
    assert engine.message_bytes_max == 1_000
    with pytest.raises(NotImplementedError):
        ask(engine)


def test_an_engine_written_in_python_is_called_through_the_seam(tmp_path):
    class Counting(Engine):
        asked = 0

        def max_offset(self, queue_ref):
            Counting.asked += 1
            return 7

    assert Counting(Room(0), 1).max_offset(0) == 7
    assert Counting.asked == 1
