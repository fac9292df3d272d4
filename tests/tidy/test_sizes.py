"""Modules of about 200 lines and functions of about 10: a longer one is a sign that two things share a room."""

from __future__ import annotations

import ast

import pytest

from tests.support.sources import PRODUCT_SOURCES, ROOT

MODULE_LINES_MAX = 420
FUNCTION_LINES_MAX = 60
# Each with its reason: nothing else may pass the limit.
LONGER_MODULES: dict[str, int] = {}
LONGER_FUNCTIONS: dict[str, int] = {}


@pytest.mark.parametrize("path", PRODUCT_SOURCES)
def test_module_is_of_a_size_that_can_be_read_at_once(path):
    lines = len((ROOT / path).read_text().splitlines())
    assert lines <= LONGER_MODULES.get(path, MODULE_LINES_MAX)


@pytest.mark.parametrize("path", PRODUCT_SOURCES)
def test_functions_are_of_a_size_that_can_be_read_at_once(path):
    if path in LONGER_MODULES:
        return
    tree = ast.parse((ROOT / path).read_text())
    sizes = {
        f"{path}:{node.name}": node.end_lineno - node.lineno + 1 - _docstring_lines(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    too_long = {name: size for name, size in sizes.items() if size > LONGER_FUNCTIONS.get(name, FUNCTION_LINES_MAX)}
    assert not too_long


def _docstring_lines(node):
    first = node.body[0]
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return first.end_lineno - first.lineno + 1 if is_docstring else 0


def test_exceptions_name_what_exists():
    named = {*LONGER_MODULES, *(name.partition(":")[0] for name in LONGER_FUNCTIONS)}
    assert not [path for path in named if not (ROOT / path).exists()]
