"""The normative statements of MQTT, the tests that name them, and the page that shows them.

The page is made anew by `python -m tests.conformance.mqtt.clauses > docs/protocols/mqtt-clauses.md`.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

FOLDER = Path(__file__).parent
FILES = {"3.1.1": "clauses_3_1_1.toml", "5.0": "clauses_5_0.toml"}
LEVELS = {"v3": (4, "3.1.1"), "v5": (5, "5.0")}
STATUSES = {
    "done": "done",
    "otherwise": "done otherwise",
    "refused": "refused",
    "client": "the client's",
}
_INTRO = """\
# MQTT, clause by clause

Each normative statement of MQTT 3.1.1 and 5.0 by its number, what it asks for in our words, and what becomes of it
here. Each that is done, or done otherwise, has a test that bears its number in `tests/conformance/mqtt`; `make check`
sees to that. What binds clients alone is marked as theirs. This page is made of
`tests/conformance/mqtt/clauses_*.toml`, by
`python -m tests.conformance.mqtt.clauses > docs/protocols/mqtt-clauses.md`. What is spoken besides: [MQTT](mqtt.md).
"""


class Clause(NamedTuple):
    """A normative statement: `number` is what follows `MQTT-`, `words` are ours, `note` says why or how."""

    version: str
    number: str
    status: str
    words: str
    note: str


def read_clauses() -> list[Clause]:
    """Return all of both versions, in the order of their numbers."""
    return [
        Clause(version, f"{section}-{n}", said[0], said[1], said[2] if len(said) > 2 else "")
        for version, name in FILES.items()
        for section, statements in tomllib.loads((FOLDER / name).read_text()).items()
        for n, said in statements.items()
    ]


def keeps(*, v3: str = "", v5: str = ""):
    """Run a test for each version whose clauses it holds the door to: numbers as "3.1.0-1 3.1.0-2".

    The test takes `side`, a door with clients of that version.
    """
    return pytest.mark.parametrize(
        "side",
        [
            pytest.param(level, id=f"{version} {' '.join(f'MQTT-{number}' for number in numbers.split())}")
            for (level, version), numbers in zip(LEVELS.values(), (v3, v5), strict=True)
            if numbers
        ],
        indirect=True,
    )


def find_tests() -> dict[tuple[str, str], list[str]]:
    """Return the tests of each clause, by version and number; they are read, not run."""
    tests: dict[tuple[str, str], list[str]] = {}
    for path in sorted(FOLDER.glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef) or not node.name.startswith("test_"):
                continue
            for one in node.decorator_list:
                if isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id == "keeps":
                    for keyword in one.keywords:
                        for number in ast.literal_eval(keyword.value).split():
                            key = LEVELS[keyword.arg or ""][1], number
                            tests.setdefault(key, []).append(f"{path.name}::{node.name}")
    return tests


def clauses_page() -> str:
    """Return docs/protocols/mqtt-clauses.md."""
    clauses = read_clauses()
    lines = [_INTRO, "| version | " + " | ".join(STATUSES.values()) + " | all |", "|---" * (len(STATUSES) + 2) + "|"]
    for version in FILES:
        own = [clause.status for clause in clauses if clause.version == version]
        lines.append(f"| {version} | " + " | ".join(str(own.count(status)) for status in STATUSES) + f" | {len(own)} |")
    for version in FILES:
        lines += ["", f"## MQTT {version}", "", "| clause | what it asks for | here |", "|---|---|---|"]
        for clause in clauses:
            if clause.version == version:
                here = STATUSES[clause.status] + (f": {clause.note}" if clause.note else "")
                lines.append(f"| {clause.number} | {clause.words} | {here} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(clauses_page())
