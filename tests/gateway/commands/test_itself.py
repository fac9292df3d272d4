from __future__ import annotations

import json

import pytest

from gateway.commands.itself import line_as_json
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
    told = [json.loads(line) for line in call_lmq("log", "tail", "--count", "2", "--json", *admin).stdout.splitlines()]
    assert [{*one} for one in told] == [{"time", "level", "logger", "message"}] * 2
    assert {one["level"] for one in told} <= {"debug", "info", "warning"}
    assert call_lmq("log", "level", "loud", *admin).exit_code == 2


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"level": "info"}', {"level": "info"}),
        ("T info gateway.x a b=1", {"time": "T", "level": "info", "logger": "gateway.x", "message": "a b=1"}),
        ("odd one", {"message": "odd one"}),
    ],
)
def test_lines_of_either_format_are_objects(line, told):
    assert json.loads(line_as_json(line)) == told


def test_retention_runs_at_once(running):
    admin = ("--admin", f"127.0.0.1:{running.port('admin')}")
    told = call_lmq("retention", "run", *admin).stdout
    assert told.startswith("0 segments went; the log has ")
    bounds = "after 48 h (store.retention.age_hours), and no size is too large (store.retention.bytes_max)\n"
    assert told.endswith(bounds)
