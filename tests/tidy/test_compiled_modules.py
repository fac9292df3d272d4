"""A compiled module is a plain .py with a .pxd beside it, and stands in COMPILED of setup.py."""

from __future__ import annotations

import importlib
import os

import pytest

from tests.support.sources import COMPILED_DECLARATIONS, ROOT, compiled_list

# Declarations only: inline C in place of a Python module of the same name.
HEADERS = {"core/octets.pxd"}


@pytest.mark.parametrize("path", compiled_list())
def test_compiled_module_has_its_declarations(path):
    assert (ROOT / path).is_file()
    assert (ROOT / path).with_suffix(".pxd").is_file()


def test_each_module_with_declarations_is_compiled():
    declared = {path.removesuffix(".pxd") + ".py" for path in COMPILED_DECLARATIONS if path not in HEADERS}
    assert declared == set(compiled_list())


@pytest.mark.parametrize("path", compiled_list())
def test_module_that_runs_is_of_the_build_under_test(path):
    module = importlib.import_module(path.removesuffix(".py").replace("/", "."))
    assert (ROOT / path).parent == type(ROOT)(module.__file__).parent
    if os.environ.get("LMQ_COMPILE") == "none":
        assert module.__file__.endswith(".py")
