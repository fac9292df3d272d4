from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pamqp.commands import Basic

from gateway.amqp.traits import Traits


def traits(key="k", **properties):
    return Traits(key, Basic.Properties(**properties).marshal())


@pytest.mark.parametrize(
    ("by", "some", "other"),
    [
        (None, {"key": "a"}, {"key": "b"}),
        (("hash-header", "h"), {"headers": {"h": "1"}}, {"headers": {"h": 1}}),
        (("hash-header", "h"), {"headers": {"h": 1, "x": 1}}, {"headers": {"h": 2, "x": 1}}),
        (("hash-header", "h"), {"headers": {"h": True}}, {"headers": {"x": True}}),
        (("hash-property", "message_id"), {"message_id": "1"}, {"message_id": "2"}),
        (("hash-property", "correlation_id"), {"correlation_id": "1"}, {"message_id": "1"}),
        (
            ("hash-property", "timestamp"),
            {"timestamp": datetime.fromtimestamp(1, UTC)},
            {"timestamp": datetime.fromtimestamp(2, UTC)},
        ),
    ],
)
def test_what_is_hashed_is_the_part_that_is_named(by, some, other):
    same = {**some, "content_type": "t", "reply_to": "r"}
    if by is not None:
        same["key"] = "another"
    assert traits(**some).hashed(by) == traits(**same).hashed(by) != traits(**other).hashed(by)


@pytest.mark.parametrize("by", [("hash-header", "h"), ("hash-property", "timestamp")])
def test_messages_without_the_part_are_hashed_alike(by):
    assert traits("a").hashed(by) == traits("b", headers={"x": 1}).hashed(by) == Traits("c").hashed(by)


def test_whole_numbers_of_all_sizes_are_alike():
    by = ("hash-header", "h")
    assert traits(headers={"h": 1}).hashed(by) == Traits("k", b"\x20\x00\0\0\0\x0b\x01hl\0\0\0\0\0\0\0\x01").hashed(by)
