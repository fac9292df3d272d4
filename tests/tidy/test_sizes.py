"""Modules of about 200 lines and functions of about 10: a longer one is a sign that two things share a room."""

from __future__ import annotations

import ast

from tests.support.sources import PRODUCT_SOURCES, ROOT, TEST_SOURCES

MODULE_LINES_MAX = 420
FUNCTION_LINES_MAX = 60
TEST_LINES_MAX = 550  # a file for each source file, and others beside it for what the source does
# Each with its reason: nothing else may pass the limit.
LONGER_MODULES: dict[str, int] = {}
LONGER_FUNCTIONS: dict[str, int] = {}


def test_modules_are_of_a_size_that_can_be_read_at_once():
    sizes = {path: len((ROOT / path).read_text().splitlines()) for path in PRODUCT_SOURCES}
    too_long = {path: size for path, size in sizes.items() if size > LONGER_MODULES.get(path, MODULE_LINES_MAX)}
    assert not too_long


def test_tests_are_split_by_what_they_show():
    sizes = {path: len((ROOT / path).read_text().splitlines()) for path in TEST_SOURCES}
    assert not {path: size for path, size in sizes.items() if size > TEST_LINES_MAX}


def test_functions_are_of_a_size_that_can_be_read_at_once():
    sizes = {
        f"{path}:{node.name}": node.end_lineno - node.lineno + 1 - _docstring_lines(node)
        for path in PRODUCT_SOURCES
        if path not in LONGER_MODULES
        for node in ast.walk(ast.parse((ROOT / path).read_text()))
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
