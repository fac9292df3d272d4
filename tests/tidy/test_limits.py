"""A limit says where its number comes from: in a comment on its line or just above it, or in the text below it."""

from __future__ import annotations

import ast
import re

from tests.support.sources import PRODUCT_SOURCES, ROOT

# Ends of names by which a number is a limit, a size, a time or an amount of work, and not a code of a format.
_OF_LIMITS = re.compile(
    r"(?:^|_)(?:MAX|MIN|LEAST|MOST|LIMIT|BUDGET|BYTES|CHARS|COUNT|CACHED|KEPT|BATCH|CHUNK|PREFETCH|INFLIGHT|WINDOW"
    r"|ROUNDS|TRIES|LOOKS|LEVELS|PARTS|SHARE|RATIO|PAGE|ROWS|SLOTS|TIMEOUT|INTERVAL|AT_ONCE|TOGETHER|TOLD"
    r"|(?:A|AN)_[A-Z]+|NS|MS|S)(?:_MAX|_MIN|_FIRST)?$"
)
_OF_UNITS = re.compile(r"(?:^|_)(?:SECOND|MINUTE|HOUR|DAY)_(?:NS|MS|S|MIN)$")
_CODES = ("Enum", "IntEnum", "IntFlag")


def _numbers(node):
    """Return the numbers that an expression of them is made of; none where it is more than that."""
    if any(isinstance(one, ast.Call | ast.Dict | ast.List | ast.Set | ast.Subscript) for one in ast.walk(node)):
        return []
    found = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant)]
    return found if all(type(one) in {int, float} for one in found) else []


def _names(statement):
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return [one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)]


def _is_limit(statement):
    if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
        return False
    is_named = any(_OF_LIMITS.search(name) and not _OF_UNITS.search(name) for name in _names(statement))
    return is_named and all(map(str.isupper, _names(statement))) and bool(_numbers(statement.value))


def _bodies(tree):
    yield tree.body
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and not any(ast.unparse(base) in _CODES for base in node.bases):
            yield node.body


def _unexplained(text):
    lines = text.splitlines()
    for body in _bodies(ast.parse(text)):
        for place, statement in enumerate(body):
            if not _is_limit(statement):
                continue
            own = lines[statement.lineno - 1 : statement.end_lineno]
            is_said_above = statement.lineno > 1 and lines[statement.lineno - 2].lstrip().startswith("#")
            below = body[place + 1] if place + 1 < len(body) else None
            is_said_below = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
            if not (is_said_above or is_said_below or any("#" in line for line in own)):
                yield statement.lineno, _names(statement)[0]


def test_each_limit_says_why_it_is_that_number():
    missing = [
        f"{path}:{line}: {name}" for path in PRODUCT_SOURCES for line, name in _unexplained((ROOT / path).read_text())
    ]
    assert not missing


def test_limits_are_known_by_their_names():
    text = (
        "TRIES_MAX = 8\n"
        "WAIT_S = 0.5  # as long as a client waits\n"
        "# three: the third is the charm\n"
        "LOOKS_A_STEP = 3\n"
        "HOUR_MS = 3_600_000\n"
        "PUBLISH = 3\n"
        "NAME_MAX = len(PREFIX) + 3\n"
        "class Kind(IntEnum):\n"
        "    RECEIVE_MAX = 0x21\n"
        "class Wheel:\n"
        "    SLOTS: int = 1 << 6\n"
    )
    assert list(_unexplained(text)) == [(1, "TRIES_MAX"), (11, "SLOTS")]
