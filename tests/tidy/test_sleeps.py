"""Tests wait for what happens, not for a time."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.support.sources import ROOT, TEST_SOURCES

_NEVER_S = 60  # longer than any test takes: a stand-in that gives no answer
_SLEEPS = re.compile(r"(.*\.)?sleep|(threading\.Event\(\)|NEVER|never)\.wait")  # an event that nobody sets is a sleep
_MEASURES = re.compile(r"tests/benchmarks/(?!.*test_\w+\.py$)")  # what is measured lasts as long as it is told to


def _find_waits(source: str) -> Iterator[int]:
    """Yield the line of each sleep for a time that is neither between two looks at a condition nor for ever."""
    lines = source.splitlines()

    def walk(node: ast.AST, is_in_loop: bool) -> Iterator[int]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Call) and child.args and _SLEEPS.fullmatch(ast.unparse(child.func)):
                said = child.args[0]
                is_for_ever = isinstance(said, ast.Constant) and (said.value == 0 or said.value >= _NEVER_S)
                reason = lines[child.lineno - 1].partition("#")[2].replace("noqa: TID251", "").strip(" -")
                if not (is_in_loop or is_for_ever or reason):
                    yield child.lineno
            is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from walk(child, not is_function and (is_in_loop or isinstance(child, ast.While | ast.For)))

    return walk(ast.parse(source), is_in_loop=False)


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("await asyncio.sleep(0)", []),
        ("await asyncio.sleep(0.05)", [1]),
        ("time.sleep(PACE_S)  # noqa: TID251", [1]),
        ("time.sleep(PACE_S)  # noqa: TID251 - a program of its own", []),
        ("await asyncio.sleep(0.05)  # the work that a stop waits for", []),
        ("while not ready():\n    time.sleep(0.01)", []),
        ("answer = lambda asked: asyncio.sleep(60)", []),
        ("connection.sleep(0.02)", [1]),
        ("threading.Event().wait(0.5)", [1]),
        ("NEVER.wait(0.5)", [1]),
        ("NEVER.wait()", []),
        ("while True:\n    def listen():\n        time.sleep(0.01)\n    listen()", [3]),
    ],
)
def test_sleeps_are_told_apart(source, lines):
    assert list(_find_waits(source)) == lines


def test_no_test_waits_for_a_time_without_a_reason():
    sources = {path: (ROOT / path).read_text() for path in TEST_SOURCES if not _MEASURES.match(path)}
    sleepers = {path: source for path, source in sources.items() if "sleep(" in source or "wait(" in source}
    assert not [f"{path}:{line}" for path, source in sleepers.items() for line in _find_waits(source)]
