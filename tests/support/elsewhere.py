"""Clients' programs in other languages, built by their own tools from their own registries."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.sources import ROOT

PROGRAMS = ROOT / "tests" / "integration"
BUILT = ROOT / "build" / "clients"
FETCH_S = 300
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
beside_ci = pytest.mark.skipif(
    "LMQ_TEST_CLIENTS" not in os.environ,
    reason="beside CI: make clients, make clients-amqp and make clients-rocketmq run them",
)
in_ci = pytest.mark.skipif(
    not os.environ.keys() & {"LMQ_TEST_CLIENTS", "LMQ_TEST_ROCKETMQ_JAVA"},
    reason=".ci/run and make clients-rocketmq run them",
)


def build(tool: str, name: str, *command: str) -> Path:
    """Return a copy of a program's folder in which `command` has fetched and built what it needs."""
    folder = BUILT / name
    if shutil.which(tool) is not None:
        shutil.copytree(PROGRAMS / name, folder, dirs_exist_ok=True)
    fetch(tool, folder, *command)
    return folder


def fetch(tool: str, folder: Path, *command: str) -> str:
    """Have `tool` fetch or build in `folder`, and return what it says; where that cannot be, the test is skipped."""
    if shutil.which(tool) is None:
        pytest.skip(f"there is no {tool}")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        made = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=FETCH_S, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip(f"{tool} could not fetch or build it in {FETCH_S} s")
    if made.returncode:
        said = COLOURS.sub("", made.stdout + made.stderr).strip()
        pytest.skip(f"{tool} could not fetch or build it: {said[:500]}")
    return made.stdout
