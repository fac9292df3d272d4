"""Each threat that the page on security names has tests, they are there, and they run."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMED = re.compile(r"`([^`]+\.py)(?:::(\w+))?`|`::(\w+)`")
ROWS_MIN = 40
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def read_rows(page):
    """Return the rows of the table of threats: each threat, and the cell with its tests."""
    section = page.partition("## Threats")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [tuple(cell.strip() for cell in line.strip("|").split(" | ")) for line in lines]


def find_named(cell):
    """Give the path and the test of each reference: `folder/file.py`, `file.py` in the same folder, `::test` in it."""
    folder = path = Path()
    for file, test, other in NAMED.findall(cell):
        if file:
            folder = Path(file).parent if Path(file).parent.parts else folder
            path = folder / Path(file).name
        yield path, test or other


def is_always(condition):
    """Return whether a condition of skipping is a constant that holds."""
    return isinstance(condition, ast.Constant) and bool(condition.value)


def skips(node):
    """Return whether a mark, as it stands in the source, has its tests skipped wherever they run."""
    said = ast.unparse(node)
    if isinstance(node, ast.List | ast.Tuple):
        return any(map(skips, node.elts))
    if said.startswith("pytest.mark.skipif"):
        return isinstance(node, ast.Call) and bool(node.args) and is_always(node.args[0])
    return said.startswith(("pytest.mark.skip", "pytest.skip", "unittest.skip"))


def find_tests(source):
    """Return the tests of a file that are not skipped wherever they run."""
    tree = ast.parse(source)
    for node in tree.body:
        is_mark = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
        if (is_mark or isinstance(node, ast.Expr)) and skips(node.value):
            return set()
    functions = [node for node in tree.body if isinstance(node, FUNCTIONS) and node.name.startswith("test")]
    return {one.name for one in functions if not any(map(skips, one.decorator_list)) and not starts_with_skip(one)}


def starts_with_skip(function):
    """Return whether a test skips itself before it does anything."""
    first = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return bool(first) and isinstance(first[0], ast.Expr) and skips(first[0].value)


THREATS = read_rows((ROOT / "docs" / "security.md").read_text())


def test_the_table_is_read():
    assert len(THREATS) > ROWS_MIN
    assert all(len(row) == 2 for row in THREATS)


@pytest.mark.parametrize(("threat", "cell"), THREATS, ids=[f"row {number}" for number in range(len(THREATS))])
def test_each_threat_names_tests_that_are_there_and_run(threat, cell):
    named = list(find_named(cell))
    assert named, threat
    for path, test in named:
        assert (ROOT / path).is_file(), path
        tests = find_tests((ROOT / path).read_text())
        assert tests, f"{path} has no test that runs"
        assert not test or test in tests, f"{path} has no test {test} that runs"


@pytest.mark.slow
def test_each_file_of_tests_is_collected():
    files = sorted({str(path) for _, cell in THREATS for path, _ in find_named(cell)})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2_000:]
    collected = {line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line}
    assert set(files) <= collected


@pytest.mark.parametrize(
    ("source", "tests"),
    [
        ("def test_a(): pass\nasync def test_b(): pass\ndef other(): pass", {"test_a", "test_b"}),
        ("@pytest.mark.skip\ndef test_a(): pass\n@pytest.mark.skip(reason='x')\ndef test_b(): pass", set()),
        ("@pytest.mark.skipif(True, reason='x')\ndef test_a(): pass", set()),
        ("@pytest.mark.skipif(TOOL is None, reason='x')\ndef test_a(): pass", {"test_a"}),
        ("pytestmark = [pytest.mark.slow, pytest.mark.skip]\ndef test_a(): pass", set()),
        ("pytest.skip('x', allow_module_level=True)\ndef test_a(): pass", set()),
        ("def test_a():\n    '''Say.'''\n    pytest.skip('x')", set()),
    ],
)
def test_tests_that_never_run_are_none(source, tests):
    assert find_tests(source) == tests


def test_references_go_by_the_folder_and_file_before():
    cell = "`a/b/test_x.py::test_1`, `::test_2`, `test_y.py`, `c/test_z.py`"
    told = [(str(path), test) for path, test in find_named(cell)]
    assert told == [
        ("a/b/test_x.py", "test_1"),
        ("a/b/test_x.py", "test_2"),
        ("a/b/test_y.py", ""),
        ("c/test_z.py", ""),
    ]
