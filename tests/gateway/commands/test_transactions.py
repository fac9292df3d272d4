from __future__ import annotations

import json

import pytest

from gateway.commands import transactions
from tests.support.commands import call_lmq

ITEM = {
    "number": 3, "id": "4096", "topic": "Pay", "group": "payers", "producers": 0, "key": "7F00", "body_bytes": 12,
    "stored_at_ms": 1_790_000_000_000,
}  # fmt: skip


@pytest.fixture
def asked(monkeypatch):
    """What the API is asked; it answers with one transaction of two."""
    questions = []

    class Api:
        def __init__(self, admin, user, password):
            questions.append((admin, user, password))

        def get(self, path, question):
            questions.append((path, question))
            return {"pending": 2, "items": [ITEM]}

    monkeypatch.setattr(transactions, "AdminClient", Api)
    return questions


@pytest.mark.parametrize("command", [("transactions",), ("transactions", "list")])
def test_what_waits_for_its_end_is_shown(asked, command):
    shown = call_lmq(*command, "--limit", "7", "--admin", "here:1", "--user", "ann", "--password", "x").stdout
    assert asked == [("here:1", "ann", "x"), ("/api/lmq/transactions", {"count": 7})]
    heads, row = [line.split() for line in shown.splitlines() if "topic" in line or "payers" in line]
    assert heads == ["id", "topic", "group", "producers", "stored", "bytes", "key"]
    assert row == ["4096", "Pay", "payers", "0", "2026-09-21", "14:13:20", "12", "7F00"]
    assert shown.endswith("1 more wait\n")


def test_programs_get_the_items(asked):
    assert json.loads(call_lmq("transactions", "--json").stdout) == [ITEM]
    assert len(asked) == 2
