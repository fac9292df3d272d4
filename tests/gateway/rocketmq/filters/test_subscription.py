from __future__ import annotations

from gateway.rocketmq.filters.sql_filter import SqlFilter
from gateway.rocketmq.filters.subscription import read_subscription


def test_subscriptions_are_read_from_heartbeats():
    tags = read_subscription({"subString": "a || b", "subVersion": 7})
    assert (tags.wanted, tags.version, tags.kind, tags.text, tags.refusal) == ({b"a", b"b"}, 7, "TAG", "a || b", None)
    sql = read_subscription({"subString": "a > 1", "expressionType": "SQL92", "subVersion": "x"})
    assert isinstance(sql.wanted, SqlFilter)
    assert (sql.version, sql.kind, sql.text) == (0, "SQL92", "a > 1")
    for kind in ("SQL92", "XPATH"):
        assert read_subscription({"subString": "a >", "expressionType": kind}).refusal
    assert read_subscription({}).wanted is None
