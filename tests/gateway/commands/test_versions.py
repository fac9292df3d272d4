from __future__ import annotations

import json
import platform

import pytest

from gateway.version import VERSION
from tests.support.commands import call_lmq


def test_what_is_installed_is_told():
    found = json.loads(call_lmq("version", "--json").stdout)
    assert found["lmq-gateway"] == VERSION
    assert found["python"] == platform.python_version()
    assert found["typer"]
    assert call_lmq("version").stdout.splitlines()[0].split() == ["lmq-gateway", VERSION]


@pytest.mark.slow
def test_the_gateway_s_version_is_asked_for(running):
    admin = f"127.0.0.1:{running.port('admin')}"
    assert json.loads(call_lmq("version", "--server", "--json", "--admin", admin).stdout)["gateway"] == VERSION
