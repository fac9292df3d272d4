from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gateway import serving
from gateway.process import core_dumps
from tests.support.sources import ROOT

CHILD = """
import os, resource
from pathlib import Path
from gateway.process.core_dumps import forbid_core_dumps
secret = "hush" + "-hush-%d" % os.getpid()
if {forbids}:
    forbid_core_dumps()
print(resource.getrlimit(resource.RLIMIT_CORE)[0], Path("/proc/self/coredump_filter").read_text().strip())
os.abort()
"""


def crash(folder, *, forbids):
    """Return what a process says that ends by SIGABRT, and the core files that it leaves."""
    command = [sys.executable, "-c", CHILD.format(forbids=forbids)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGABRT
    return done.stdout.split(), list(folder.iterdir())


def test_process_that_crashes_leaves_nothing_of_its_memory(tmp_path):
    said, left = crash(tmp_path, forbids=True)
    assert said == ["0", "00000000"]
    assert left == []


def test_dumps_are_as_the_system_has_them_where_they_are_allowed(tmp_path):
    said, _ = crash(tmp_path, forbids=False)
    ours = [str(resource.getrlimit(resource.RLIMIT_CORE)[0]), Path("/proc/self/coredump_filter").read_text().strip()]
    assert said == ours  # which a child has from its parent


def test_system_without_the_filter_is_told(monkeypatch, caplog):
    monkeypatch.setattr(core_dumps, "_FILTER", Path("/proc/self/nothing"))
    monkeypatch.setattr(core_dumps.resource, "setrlimit", lambda *_: None)
    core_dumps.forbid_core_dumps()
    assert "core dumps may have memory in them" in caplog.text


@pytest.mark.parametrize("text", ["", "[limits]\ncore_dumps = true\n"])
def test_setting_says_whether_they_are_allowed(monkeypatch, tmp_path, text):
    path = tmp_path / "lmq.toml"
    path.write_text(text)
    called = []
    monkeypatch.setattr(serving, "forbid_core_dumps", lambda: called.append(1))
    monkeypatch.setattr(serving, "raise_limit", lambda: None)
    monkeypatch.setattr(serving.uvloop, "run", lambda work: work.close() or 0)
    monkeypatch.setattr(serving, "set_up_logs", lambda *_: None)
    monkeypatch.setattr(serving.signal, "signal", lambda *_: None)
    assert serving.run_gateway(path, {"data_dir": tmp_path}) == 0
    assert called == ([] if text else [1])
