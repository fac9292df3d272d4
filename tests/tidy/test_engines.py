"""Each test of a door runs on the engine that answers late, or says why not."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from core.store.embedded import EmbeddedEngine
from tests.support import engines
from tests.support.full_engine import FullEngine
from tests.support.late_engine import make_late
from tests.support.sources import ROOT, TEST_SOURCES

DOORS = tuple(f"tests/{name}/" for name in ("conformance", "gateway", "integration", "lmq", "model"))
# Worlds and gateways take an engine that `engines` gives.
OPENS = re.compile(r"\b(EmbeddedEngine|make_broker)\(")
# No door is opened there: what runs the broker's turns, and a late engine that has nothing away.
OTHERS = {
    "tests/gateway/runtime/test_chores.py",
    "tests/gateway/runtime/test_loop.py",
    "tests/gateway/rocketmq/pop/test_dead.py",
}
MARK = re.compile(r"pytest\.mark\.(at_once|here)\b(?!\(reason=)")


def _find(pattern, paths):
    return [path for path in paths if pattern.search((ROOT / path).read_text())]


def test_tests_of_doors_open_no_engine_themselves():
    assert set(_find(OPENS, [path for path in TEST_SOURCES if path.startswith(DOORS)])) == OTHERS


def test_marks_say_why():
    assert MARK.search("@pytest.mark.here\n")
    assert not _find(MARK, [path for path in TEST_SOURCES if path != "tests/tidy/test_engines.py"])


class Item:
    """A test with these marks, and one parameter."""

    def __init__(self, *marks, param=None):
        self._marks = {mark: SimpleNamespace(kwargs={"reason": "why"}) for mark in marks}
        if param is not None:
            self.callspec = SimpleNamespace(params={"engine_maker": param})

    def get_closest_marker(self, name):
        return self._marks.get(name)


@pytest.fixture
def standing(monkeypatch):
    """What doors stand on, for a test that stands on the late engine."""
    standing = engines.Standing()
    standing.name = "late"
    monkeypatch.setattr(engines, "STANDING", standing)
    return standing


@pytest.mark.parametrize(
    ("marks", "maker"),
    [((), engines.MAKERS["late"]), (("here",), make_late), (("at_once",), EmbeddedEngine)],
)
def test_doors_stand_on_the_late_engine_where_no_mark_says_otherwise(standing, marks, maker):
    engines.begin(Item(*marks))
    assert engines.find_maker() is maker
    standing.name = "embedded"
    assert engines.find_maker() is EmbeddedEngine


def test_a_program_stands_on_the_embedded_engine(standing):
    assert standing.item is None
    assert engines.find_maker() is engines.find_maker(EmbeddedEngine) is EmbeddedEngine


def test_the_embedded_engine_alone_is_for_tests_that_say_why(standing):
    for item in (Item("at_once"), Item(param="embedded"), Item(param=EmbeddedEngine)):
        engines.begin(item)
        assert engines.find_maker(EmbeddedEngine) is EmbeddedEngine
    for item in (Item(), Item("here"), Item(param="late")):
        engines.begin(item)
        for given in (EmbeddedEngine, FullEngine):
            with pytest.raises(AssertionError, match="says why"):
                engines.find_maker(given)
        assert engines.find_maker(make_late) is make_late
