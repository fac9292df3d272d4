from __future__ import annotations

import pytest

from core.broker import Broker
from core.engine import Engine
from core.message import PublishBatch, StoredBatch
from core.metrics import Metrics
from core.room import Room
from core.store.embedded import EmbeddedEngine
from tests.support.late_engine import LateEngine
from tests.support.store import open_store


def _is_asked(value):
    """Return whether an entry of the class is a method or a property, and no field."""
    return callable(value) or isinstance(value, property) or type(value).__name__ == "getset_descriptor"


FIELDS = {"room", "message_bytes_max", "request_turn"}
ASKED = sorted(
    name
    for name, value in vars(Engine).items()
    if not name.startswith("__") and name not in FIELDS and _is_asked(value)
)


@pytest.mark.parametrize("engine", [EmbeddedEngine, LateEngine])
@pytest.mark.parametrize("name", ASKED)
def test_engines_answer_all_that_an_engine_is_asked(engine, name):
    assert getattr(engine, name) is not getattr(Engine, name)
    assert name in vars(engine)


def test_all_that_an_engine_is_asked_is_found():
    assert {"intern_queue", "find_offset", "store_host", "end_place", "read", "step", "figures"} <= set(ASKED)
    assert len(ASKED) > 35


def test_nothing_of_a_store_is_reached_by_the_broker_or_by_what_it_knows_of_its_engine(tmp_path):
    store = open_store(tmp_path)
    broker = Broker(EmbeddedEngine(store, is_sync=False), parent_topic=b"P", metrics=Metrics())
    assert not [one for one in (broker, Engine(Room(0), 1_000)) if hasattr(one, "store")]
    store.close()


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
