from __future__ import annotations

import json

import pytest

from gateway.commands import held
from tests.support.commands import call_lmq

ITEM = {
    "kind": "session", "name": "pump-7", "vhost": "", "light_queue": "%LMQ%mqtt%plant", "offset": 3, "waiting": 12,
    "place": 4_096, "stored_at_ms": 1_790_000_000_000,
}  # fmt: skip


@pytest.fixture
def asked(monkeypatch):
    """What the API is asked; it answers with one session."""
    questions = []

    class Api:
        def __init__(self, admin, user, password):
            questions.append((admin, user, password))

        def get(self, path, question):
            questions.append((path, question))
            return {"log_bytes": 9, "not_looked_at": 5, "items": [ITEM]}

    monkeypatch.setattr(held, "AdminClient", Api)
    return questions


@pytest.mark.parametrize("command", [("held",), ("held", "list")])
def test_what_keeps_the_oldest_messages_is_shown(asked, command):
    shown = call_lmq(*command, "--limit", "7", "--admin", "here:1", "--user", "ann", "--password", "x").stdout
    assert asked == [("here:1", "ann", "x"), ("/api/lmq/held", {"count": 7})]
    heads, row = [line.split() for line in shown.splitlines() if "name" in line or "pump-7" in line]
    assert heads[:3] == ["name", "kind", "vhost"]
    assert row == ["pump-7", "session", "-", "2026-09-21", "14:13:20", "12", "3", "4096", "%LMQ%mqtt%plant"]
    assert shown.endswith("5 more were not looked at\n")


def test_programs_get_the_items(asked):
    assert json.loads(call_lmq("held", "--json").stdout) == [ITEM]
    assert len(asked) == 2


@pytest.mark.slow
def test_a_gateway_answers(running):
    result = call_lmq("held", "--json", "--admin", f"127.0.0.1:{running.port('admin')}")
    assert result.exit_code == 0, result.stderr
    assert isinstance(json.loads(result.stdout), list)
