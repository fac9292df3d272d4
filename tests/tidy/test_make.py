"""A second `make` has nothing to set up; what changed is made again, and no more than that."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from tests.support.sources import ROOT

STAMPS = ("bin/python", ".tools", ".base", ".compiled", ".test", ".check")  # in the order in which a set-up makes them
QUIET = {name: value for name, value in os.environ.items() if name not in {"MAKEFLAGS", "MAKELEVEL", "MFLAGS"}}

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")


@pytest.fixture
def environment(tmp_path):
    """The folder of an environment that was set up after all that it is made from was written."""
    for stamp in STAMPS:
        path = tmp_path / stamp
        path.parent.mkdir(exist_ok=True)
        path.touch()
    return tmp_path


def commands_of(environment, target, *changed):
    """Return the programs that `make` would run for a target: `pip`, `venv` and `setup.py`; `changed` is newer."""
    newer = [part for path in changed for part in ("-W", path)]
    command = ["make", "-n", f"VENV={environment}", *newer, target]
    said = subprocess.run(command, cwd=ROOT, env=QUIET, capture_output=True, text=True, check=True).stdout
    found = {"pip": "-m pip", "venv": "-m venv", "setup.py": "setup.py --quiet", "serve": "lmq serve"}
    return {name for name, text in found.items() if any(text in line for line in said.splitlines())}


def test_a_second_run_starts_the_gateway_and_does_nothing_else(environment):
    assert commands_of(environment, "run") == {"serve"}
    assert commands_of(environment, "setup-check") == set()


@pytest.mark.parametrize("path", ["core/message.py", "core/message.pxd", "core/crc32.h", "setup.py", "levels.py"])
def test_what_is_compiled_is_compiled_again_and_nothing_is_fetched(environment, path):
    assert commands_of(environment, "setup-check", path) == {"setup.py"}


@pytest.mark.parametrize("path", ["gateway/settings/models.py", "README.md", "tests/conftest.py"])
def test_what_is_not_compiled_makes_no_work(environment, path):
    assert commands_of(environment, "setup-check", path) == set()


@pytest.mark.parametrize("path", ["pyproject.toml", "requirements/constraints.txt"])
def test_other_requirements_are_fetched(environment, path):
    assert commands_of(environment, "setup", path) == {"pip", "setup.py"}


def test_the_first_run_does_all_of_it(tmp_path):
    assert commands_of(tmp_path / "none", "run") == {"venv", "pip", "setup.py", "serve"}
