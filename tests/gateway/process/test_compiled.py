from __future__ import annotations

import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from types import ModuleType

import pytest

from gateway.process.compiled import OUTDATED_S, RECORD, find_warnings


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "message.py"
    path.write_text("")
    return path


def _module(path, name="core.message"):
    module = ModuleType(name)
    module.__file__ = str(path)
    return module


def test_cause_that_the_build_wrote_down_is_named(source):
    source.with_name(RECORD).write_text("at the set-up: no C compiler found\n")
    said = "running uncompiled, several times slower: at the set-up: no C compiler found"
    assert find_warnings(_module(source)) == [said]


def test_modules_of_another_python_are_named(source):
    source.with_name(RECORD).write_text("at the set-up: no C compiler found\n")  # of an earlier one
    source.with_name("message.cpython-39-x86_64-linux-gnu.so").write_bytes(b"")
    (said,) = find_warnings(_module(source))
    taken = f"message{EXTENSION_SUFFIXES[0]}"
    assert f"compiled for another Python, message.cpython-39-x86_64-linux-gnu.so where this one takes {taken}" in said


def test_no_cause_is_made_up_where_none_is_known(source):
    (said,) = find_warnings(_module(source))
    assert said.endswith(
        "there are no compiled modules beside the sources; make run compiles them where there is a C compiler"
    )


def test_compiled_modules_that_are_older_than_their_sources_are_named(source, monkeypatch):
    built = source.with_name(f"message{EXTENSION_SUFFIXES[0]}")
    built.write_bytes(b"")
    module = _module(built)
    monkeypatch.setitem(sys.modules, "core.message", module)
    assert find_warnings(module) == []
    os.utime(built, (0, built.stat().st_mtime - 2 * OUTDATED_S))
    (said,) = find_warnings(module)
    assert said.startswith("1 compiled modules are older than their sources, which are not used: core.message; ")
