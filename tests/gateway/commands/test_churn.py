from __future__ import annotations

import json

import pytest

from gateway.commands import churn
from tests.support.commands import call_lmq, publish_mqtt, told_json

FOUND = {
    "within_s": 42,
    "connections": [{"count": 7, "door": "mqtt", "host": "192.0.2.7", "outcome": "connected"}],
    "connections_missed_max": 0,
    "logins": [
        {"count": 6, "door": "mqtt", "host": "192.0.2.7", "client": "looping", "user": "", "outcome": "logged in"}
    ],
    "logins_missed_max": 3,
}


def test_what_connects_in_a_loop_is_shown_or_told_to_programs(monkeypatch):
    class Client:
        def __init__(self, *_):
            pass

        def get(self, path, question):
            assert (path, question) == ("/api/lmq/churn", {"count": 5})
            return FOUND

    monkeypatch.setattr(churn, "AdminClient", Client)
    lines = call_lmq("connections", "churn", "--limit", "5").stdout.splitlines()
    assert lines[0] == "connections of the last 42 s"
    assert any(line.split() == ["192.0.2.7", "7", "mqtt", "connected"] for line in lines)
    assert any(line.split() == ["looping", "6", "-", "192.0.2.7", "mqtt", "logged", "in"] for line in lines)
    assert lines[-1] == "each may have come 3 times more often"
    assert json.loads(call_lmq("connections", "churn", "--limit", "5", "--json").stdout) == FOUND


@pytest.mark.slow
def test_a_running_gateway_names_who_connects(running):
    for _ in range(3):
        publish_mqtt(running, "churned", "x")
    found = told_json("connections", "churn", "--admin", f"127.0.0.1:{running.port('admin')}")
    assert any(one["door"] == "mqtt" and one["count"] >= 3 for one in found["connections"])
    assert found["logins"]
