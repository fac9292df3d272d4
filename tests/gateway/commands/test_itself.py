from __future__ import annotations

import json

import pytest

from tests.support.commands import call_lmq

pytestmark = pytest.mark.slow


def test_the_log_says_more_or_less_and_its_end_is_shown(running):
    admin = ("--admin", f"127.0.0.1:{running.port('admin')}")
    assert call_lmq("log", "level", *admin).stdout == "info\n"
    assert call_lmq("log", "level", "debug", "--logger", "gateway.mqtt", *admin).stdout == "info\ngateway.mqtt  debug\n"
    found = json.loads(call_lmq("log", "level", "default", "--logger", "gateway.mqtt", "--json", *admin).stdout)
    assert found == {"level": "info", "loggers": {}}
    lines = call_lmq("log", "tail", "--count", "2", *admin).stdout.splitlines()
    assert len(lines) == 2
    assert call_lmq("log", "level", "loud", *admin).exit_code == 2


def test_retention_runs_at_once(running):
    admin = ("--admin", f"127.0.0.1:{running.port('admin')}")
    told = call_lmq("retention", "run", *admin).stdout
    assert told.startswith("0 segments went; the log has ")
    assert told.endswith("after 48 h (store.retention.age_hours) or beyond no bound (store.retention.bytes_max)\n")
