"""A compiled module is a plain .py with a .pxd beside it, and stands in COMPILED of setup.py."""

from __future__ import annotations

import ast
import importlib
import os
import re
import subprocess
import sys

import pytest

from core import message
from tests.support.sources import COMPILED_DECLARATIONS, ROOT, compiled_list

# Declarations only: inline C in place of a Python module of the same name.
HEADERS = {
    "core/octets.pxd",
    "core/refill.pxd",
    "gateway/clocks.pxd",
    "gateway/net/socket_calls.pxd",
    "gateway/sync_calls.pxd",
    "gateway/yield_calls.pxd",
}


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
    if os.environ.get("LMQ_COMPILE") in {"none", "all"}:
        assert module.__file__.endswith(".py") == (os.environ["LMQ_COMPILE"] == "none")


def test_all_compiled_modules_come_from_one_library():
    if message.__file__.endswith(".py"):
        pytest.skip("nothing is compiled")
    library = importlib.import_module("core._compiled")
    parts = {name for name in vars(library) if not name.startswith("__")}
    modules = {path.removesuffix(".py").replace("/", "_") for path in compiled_list()}
    assert parts == modules | {"core__cython_shared"}


def test_what_has_to_be_compiled_and_cannot_be_fails(tmp_path):
    (tmp_path / "setup.py").write_text((ROOT / "setup.py").read_text())
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    broken = {**os.environ, "LMQ_COMPILE": "core/message.py", "PYTHONPATH": str(tmp_path / "no_cython")}
    (tmp_path / "no_cython" / "Cython").mkdir(parents=True)
    (tmp_path / "no_cython" / "Cython" / "__init__.py").write_text("raise ImportError('broken')")
    result = subprocess.run(command, cwd=tmp_path, env=broken, capture_output=True, text=True, check=False)
    assert result.returncode != 0
    assert "broken" in result.stderr
    del broken["LMQ_COMPILE"]
    result = subprocess.run(command, cwd=tmp_path, env=broken, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "no Cython found: going on uncompiled" in result.stderr


@pytest.mark.skipif(os.environ.get("LMQ_COMPILE") == "none", reason="nothing is compiled")
def test_module_is_compiled_from_a_profile_of_itself(tmp_path):
    (tmp_path / "core").mkdir()
    for name in ("setup.py", "core/__init__.py", "core/room.py", "core/room.pxd"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    use = "from core.room import Room; print(Room.__module__, Room(1))"

    def build(profile):
        env = {**os.environ, "LMQ_COMPILE": "core/room.py", "LMQ_PROFILE": profile}
        command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace", "--force"]
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)

    without = build("read")
    if "needs GCC" in without.stderr:
        pytest.skip("the compiler is not GCC")
    assert without.returncode != 0
    assert "no profile is there to read" in without.stderr
    counting = build("write")
    assert counting.returncode == 0, counting.stderr
    subprocess.run([sys.executable, "-c", use], cwd=tmp_path, check=True)
    assert list((tmp_path / "build").rglob("room.gcda"))
    laid_out = build("read")
    assert laid_out.returncode == 0, laid_out.stderr
    assert "profile count data file not found" not in laid_out.stderr
    assert (tmp_path / "build" / "optimised").exists()
    said = subprocess.run([sys.executable, "-c", use], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert said.stdout.startswith("core.room ")
    next((tmp_path / "build").rglob("room.gcda")).unlink()
    assert "profile count data file not found" in build("read").stderr
    assert build("").returncode == 0
    assert not (tmp_path / "build" / "optimised").exists()


def test_profile_of_another_compiler_is_refused(tmp_path):
    other = tmp_path / "cc"
    other.write_text("#!/bin/sh\necho 'clang version 19' >&2\n")
    other.chmod(0o755)
    (tmp_path / "setup.py").write_text((ROOT / "setup.py").read_text())
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    for profile, reason in (
        ("write", "LMQ_PROFILE needs GCC"),
        ("both", "LMQ_PROFILE is `write` or `read`, not `both`"),
    ):
        env = {**os.environ, "LMQ_COMPILE": "core/room.py", "LMQ_PROFILE": profile, "CC": str(other)}
        result = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        assert result.returncode != 0
        assert reason in result.stderr


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


@pytest.mark.parametrize("path", compiled_list())
def test_each_attribute_of_a_compiled_class_is_declared(path):
    declared = _declared((ROOT / path).with_suffix(".pxd"))
    assigned = _assigned(ast.parse((ROOT / path).read_text()))
    missing = {name: assigned[name] - attributes for name, attributes in declared.items()}
    assert not any(missing.values()), missing
