"""A compiled module is a plain .py with a .pxd beside it."""

from __future__ import annotations

import ast
import importlib
import os
import re
import runpy
import shutil
import subprocess
import sys

import pytest

from gateway.process.compiled import RECORD
from tests.support.sources import COMPILED_DECLARATIONS, ROOT, compiled_list

# Inline C in place of a Python module of the same name, which is not compiled.
HEADERS = {
    "core/octets.pxd",
    "core/untracked.pxd",
    "gateway/mqtt/varint.pxd",
    "gateway/net/socket_calls.pxd",
    "gateway/net/streams/masks.pxd",
    "gateway/runtime/sync_calls.pxd",
    "lmq/remoting/integers.pxd",
}


def test_declarations_stand_beside_their_module():
    assert not [path for path in COMPILED_DECLARATIONS if not (ROOT / path).with_suffix(".py").is_file()]


def test_c_that_is_written_by_hand_stands_in_headers():
    assert not [path for path in COMPILED_DECLARATIONS if "cdef extern from *" in (ROOT / path).read_text()]


def test_each_module_with_declarations_is_compiled():
    declared = {path.removesuffix(".pxd") + ".py" for path in COMPILED_DECLARATIONS if path not in HEADERS}
    assert declared == set(compiled_list())


def test_modules_with_a_level_of_their_own_are_compiled_and_have_one():
    levels = runpy.run_path(str(ROOT / "levels.py"))
    assert levels["QUICK"] | levels["SLOW"] <= set(compiled_list())
    assert not levels["QUICK"] & levels["SLOW"]


def test_modules_that_run_are_of_the_build_under_test():
    files = {
        path: importlib.import_module(path.removesuffix(".py").replace("/", ".")).__file__ for path in compiled_list()
    }
    assert not [path for path in files if (ROOT / path).parent != type(ROOT)(files[path]).parent]
    if os.environ.get("LMQ_COMPILE") in {"none", "all"}:
        is_pure = os.environ["LMQ_COMPILE"] == "none"
        assert not [path for path in files if files[path].endswith(".py") != is_pure]


def _copy_build(folder):
    for name in ("setup.py", "all_or_nothing.py", "levels.py"):
        (folder / name).write_text((ROOT / name).read_text())


def _build(folder, env):
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("missing", ["Cython", "compiler"])
def test_what_cannot_be_compiled_is_said_and_fails_only_where_it_has_to_be(missing, tmp_path):
    _copy_build(tmp_path)
    broken = {**os.environ, "CC": "no-such-compiler"}
    if missing == "Cython":
        (tmp_path / "no_cython" / "Cython").mkdir(parents=True)
        (tmp_path / "no_cython" / "Cython" / "__init__.py").write_text("raise ImportError('broken')")
        broken |= {"CC": "true", "PYTHONPATH": str(tmp_path / "no_cython")}
    assert _build(tmp_path, {**broken, "LMQ_COMPILE": "all"}).returncode != 0
    older = tmp_path / "core" / "older.so"
    older.parent.mkdir()
    older.touch()
    result = _build(tmp_path, {**broken, "LMQ_COMPILE": ""})
    assert result.returncode == 0, result.stderr
    assert "going on uncompiled" in result.stderr
    assert {"Cython": "broken", "compiler": "no C compiler found"}[missing] in result.stderr
    assert not older.exists()  # it does not know the sources of today
    record = (tmp_path / "core" / RECORD).read_text()
    assert record.startswith("at the set-up: ")
    assert {"Cython": "broken", "compiler": "no C compiler found"}[missing] in record


def test_choice_of_no_compiled_modules_is_written_down_until_the_next_build(tmp_path):
    _copy_build(tmp_path)
    record = tmp_path / "core" / RECORD
    assert _build(tmp_path, {**os.environ, "LMQ_COMPILE": "none"}).returncode == 0
    assert record.read_text() == "at the set-up: LMQ_COMPILE=none was chosen\n"
    assert _build(tmp_path, {**os.environ, "LMQ_COMPILE": "", "CC": "no-such-compiler"}).returncode == 0
    assert record.read_text() == "at the set-up: no C compiler found\n"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_a_change_of_c_that_is_written_by_hand_is_compiled(tmp_path):
    _copy_build(tmp_path)
    package = tmp_path / "core"
    package.mkdir()
    (package / "__init__.py").touch()
    inline = ["cdef inline int say() noexcept:", "    return answer()", ""]
    (package / "answer_c.pxd").write_text(
        "\n".join(['cdef extern from "core/answer.h" nogil:', "    int answer()", "", *inline])
    )
    (package / "answer_c.py").touch()
    (package / "answer.py").write_text("from core import answer_c\n\n\ndef give():\n    return answer_c.say()\n")
    (package / "answer.pxd").write_text("from core cimport answer_c\n\ncpdef int give()\n")
    command = [sys.executable, "-c", "from core import answer; print(answer.give())"]
    for said in ("1", "2"):
        (package / "answer.h").write_text(f"static inline int answer(void) {{ return {said}; }}\n")
        built = _build(tmp_path, {**os.environ, "LMQ_COMPILE": "all", "CFLAGS": "-O0"})
        assert built.returncode == 0, built.stderr
        told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert told.stdout.strip() == said


# A generator brings some 80 KB of C with it: a quarter of a second of the compiler.
WITH_GENERATORS = {
    "core/lmq/topic_trie.py",
    "core/store/journal.py",
    "core/store/key_index.py",
    "core/store/sealed_index.py",
    "gateway/mqtt/arriving.py",
    "gateway/mqtt/handler.py",
    "gateway/mqtt/services.py",
}


def test_compiled_modules_do_without_generators_but_for_those_that_have_one_already():
    found = {
        path
        for path in compiled_list()
        for node in ast.walk(ast.parse((ROOT / path).read_text()))
        if isinstance(node, ast.GeneratorExp | ast.Yield | ast.YieldFrom)
    }
    assert found == WITH_GENERATORS


def test_the_whole_check_compiles_or_fails():
    assert "export LMQ_COMPILE=all " in (ROOT / ".ci" / "run").read_text()


def _declared(path):
    """Return the attributes of each class of a .pxd, with those of its base, which may be another module's."""
    found = {}
    known = {}
    attributes = set()
    for line in path.read_text().splitlines():
        if match := re.match(r"from ([\w.]+) cimport (.+)", line):
            known.update(dict.fromkeys(match[2].split(", "), match[1]))
        elif match := re.match(r"cdef class (\w+)(?:\((\w+)\))?", line):
            attributes = found[match[1]] = set()
            if match[2] in known:
                base = (ROOT / known[match[2]].replace(".", "/")).with_suffix(".pxd")
                attributes |= _declared(base)[match[2]]
        elif line and not line.startswith(" "):
            attributes = set()
        elif match := re.fullmatch(r"    cdef [^(]*?([\w, ]+)", line):
            attributes.update(name.split()[-1] for name in match[1].split(","))
    return found


def _assigned(tree):
    """Return the attributes of `self` that each class of a module sets."""
    return {
        node.name: {
            target.attr
            for target in ast.walk(node)
            if isinstance(target, ast.Attribute)
            and isinstance(target.ctx, ast.Store)
            and isinstance(target.value, ast.Name)
            and target.value.id == "self"
        }
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }


def test_each_attribute_of_a_compiled_class_is_declared():
    missing = {}
    for path in compiled_list():
        assigned = _assigned(ast.parse((ROOT / path).read_text()))
        for name, attributes in _declared((ROOT / path).with_suffix(".pxd")).items():
            missing |= {f"{path}:{name}": assigned[name] - attributes} if assigned[name] - attributes else {}
    assert not missing
