"""No test waits for ever: not in a coroutine, in whose loop pytest-timeout's exception ends, and not behind its end."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from tests.support.sources import ROOT
from tests.support.waiting import limited

LEFT_OPEN = """
import asyncio
import uvloop

def test_left_open():
    loop = uvloop.new_event_loop()
    loop.run_until_complete(asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0))
    loop.close()
"""


@pytest.mark.asyncio
async def test_what_waits_for_ever_fails():
    with pytest.raises(TimeoutError):
        await limited(asyncio.Event().wait, 0.01)()


@pytest.mark.asyncio
async def test_a_test_of_a_coroutine_function_has_a_limit(request):
    runs = request.node.obj
    made_by = []
    while hasattr(runs, "__wrapped__"):
        runs = runs.__wrapped__
        made_by.append(runs.__code__.co_qualname)
    assert f"{limited.__name__}.<locals>.run" in made_by


def test_what_a_test_leaves_open_is_told_and_holds_up_no_other(tmp_path):
    (tmp_path / "test_left_open.py").write_text(LEFT_OPEN)
    command = [sys.executable, "-m", "pytest", "-q", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(tmp_path)]
    said = subprocess.run(
        [*command, str(tmp_path)], cwd=tmp_path, stdout=subprocess.PIPE, text=True, timeout=100, check=True
    )
    assert "unclosed resource" in said.stdout
