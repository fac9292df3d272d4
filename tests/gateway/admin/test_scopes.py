from __future__ import annotations

import pytest

from gateway.admin.changes_told import KINDS
from gateway.admin.scopes import PARTS, covers, find_part, may_look, may_manage


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("/api/users/ann", "users"),
        ("/api/permissions/%2F/ann", "users"),
        ("/api/queues/%2F/q", "queues"),
        ("/api/queues/%2F/q/contents", "queues"),
        ("/api/queues/%2F/q/get", "messages"),
        ("/api/exchanges/%2F/amq.topic/publish", "messages"),
        ("/api/lmq/tokens", "tokens"),
        ("/api/lmq/messages", "messages"),
        ("/api/lmq/delayed/1-2", "messages"),
        ("/api/lmq/retained/t", "messages"),
        ("/api/lmq/log-levels", "gateway"),
        ("/api/lmq/retention", "gateway"),
        ("/api/overview", ""),
        ("/api/usersabc", ""),
    ],
)
def test_path_belongs_to_a_part(path, part):
    assert find_part(path) == part


def test_each_change_belongs_to_a_part():
    assert {find_part(path) for _, path in KINDS} <= set(PARTS)
    assert "" not in {find_part(path) for _, path in KINDS}


def test_reading_is_looking_alone():
    assert may_look(("read",), "GET", "/api/queues")
    assert not may_look(("read",), "PUT", "/api/queues/%2F/q")
    assert not may_look(("users",), "GET", "/api/queues")
    assert not may_manage(("read",), "/api/queues")
    assert may_manage(("administrator",), "/api/overview")


def test_scopes_are_given_away_by_those_alone_that_have_them():
    assert covers(("administrator",), ("users", "read"))
    assert covers(("users", "tokens"), ("users",))
    assert not covers(("tokens",), ("administrator",))
