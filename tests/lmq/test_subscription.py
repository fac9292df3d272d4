from __future__ import annotations

import pytest

from lmq.message import message_of
from lmq.queues import MessageQueue
from lmq.remoting.message_codec import Record
from lmq.subscription import hash_of_java, make_subscription


def message(**properties: str):
    encoded = {name.encode(): value.encode() for name, value in properties.items()}
    record = Record(b"T", 0, 5, 99, 0, 0, 1, bytes(8), 2, bytes(8), 0, b"body", encoded)
    return message_of(record, MessageQueue("T", "b", 0), 5)


@pytest.mark.parametrize(
    ("text", "value"),
    [("", 0), ("TagA", 2598919), ("polygenelubricants", -(2**31)), ("größe", 98762257), ("😀", 1772899)],
)
def test_strings_are_hashed_as_java_does(text, value):
    assert hash_of_java(text) == value


@pytest.mark.parametrize("tags", ["*", "", "a || *"])
def test_all_messages_are_wanted(tags):
    assert make_subscription("T", tags).wants(message(TAGS="b"))
    assert make_subscription("T", tags).wants(message())


def test_a_tag_with_the_hash_of_another_is_not_wanted():
    subscription = make_subscription("T", " Aa || c ")
    assert hash_of_java("Aa") == hash_of_java("BB")
    assert subscription.wants(message(TAGS="Aa"))
    assert not subscription.wants(message(TAGS="BB"))
    assert not subscription.wants(message())


def test_a_subscription_is_described_for_heartbeats():
    said = make_subscription("T", "b || TagA").describe()
    assert said["tagsSet"] == ["TagA", "b"]
    assert said["codeSet"] == [98, 2598919]
    assert (said["topic"], said["subString"], said["expressionType"]) == ("T", "b || TagA", "TAG")
    assert make_subscription("T", sql="a > 5").describe()["expressionType"] == "SQL92"


def test_tags_and_sql_exclude_each_other():
    with pytest.raises(ValueError, match="exclude"):
        make_subscription("T", "a", "b > 5")


@pytest.mark.parametrize("changes", [{"tags": ["a"]}, {"sql": 5}, {"tags": None}])
def test_what_is_wanted_is_text(changes):
    (name,) = changes
    with pytest.raises(TypeError, match=rf"^{name}=.*it is to be of type str$"):
        make_subscription("T", **changes)
