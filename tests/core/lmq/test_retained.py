"""The newest retained message of each topic is found by the topic and by filters."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from core.lmq.retained import LOOKS_MAX, RetainedMessages, WideBranch, filter_matches
from tests.support.stores import MemoryTable

levels = st.sampled_from([b"a", b"b", b"", b"$x", b"c"])
topics = st.lists(levels, min_size=1, max_size=4).map(b"/".join)
filters = st.one_of(
    st.lists(st.one_of(levels, st.just(b"+")), min_size=1, max_size=4).map(b"/".join),
    st.lists(st.one_of(levels, st.just(b"+")), min_size=0, max_size=3).map(lambda some: b"/".join([*some, b"#"])),
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("set"), topics, st.binary(max_size=3)),
        st.tuples(st.just("remove"), topics),
        st.tuples(st.just("reopen")),
    ),
    max_size=30,
)


def version_of(record):
    """Return the number that a record of these tests begins with."""
    return int.from_bytes(record[:8], "big")


def naive_match(topic_filter, topic):
    pattern, words = topic_filter.split(b"/"), topic.split(b"/")
    if pattern[0] in {b"+", b"#"} and topic.startswith(b"$"):
        return False
    for i, level in enumerate(pattern):
        if level == b"#":
            return True
        if i >= len(words) or level not in {b"+", words[i]}:
            return False
    return len(words) == len(pattern)


@given(steps, st.lists(filters, min_size=1, max_size=8))
def test_filters_find_what_a_naive_matcher_does_also_after_reopening(actions, asked):
    table, model = MemoryTable(), {}
    written = []  # place in the log is place in here
    retained = RetainedMessages(table, version_of)
    for action, *arguments in actions:
        if action == "set":
            topic, body = arguments
            record = len(written).to_bytes(8, "big") + body
            written.append((topic, record))
            retained.set(topic, record)
            model[topic] = record
        elif action == "remove":
            retained.remove(arguments[0])
            model.pop(arguments[0], None)
        else:
            retained = RetainedMessages(table, version_of)
        assert len(retained) == len(model)
    for topic_filter in asked:
        found = list(retained.match(topic_filter))
        assert len(found) == len(dict(found))
        assert dict(found) == {topic: model[topic] for topic in model if naive_match(topic_filter, topic)}
        versions = [at for at in retained.walk_versions(topic_filter) if at is not None]
        assert sorted(versions) == sorted(version_of(record) for _, record in found)
    for offset, (topic, record) in enumerate(written):
        assert retained.find(offset) == (record if model.get(topic) == record else None)
    for topic in list(model):
        assert retained.get(topic) == model[topic]
        retained.remove(topic)
    assert list(retained.match(b"#")) == []
    assert retained._root == {}
    assert len(retained._topics) == 0


@given(filters, topics)
def test_filter_matches_what_a_naive_matcher_says(topic_filter, topic):
    assert filter_matches(topic_filter, topic) == naive_match(topic_filter, topic)


@given(st.lists(topics, unique=True, max_size=12), st.data())
def test_tree_may_change_while_somebody_walks_it(names, data):
    retained = RetainedMessages(MemoryTable(), version_of)
    for topic in names:
        retained.set(topic, b"1")
    kept = set(names)
    walk, found = retained.match(b"#"), []
    for topic, _ in walk:
        found.append(topic)
        change = data.draw(topics)
        if data.draw(st.booleans()):
            retained.set(change, b"2")
        else:
            retained.remove(change)
            kept.discard(change)
    assert len(found) == len(set(found))
    assert {topic for topic in kept if not topic.startswith(b"$")} <= set(found)


def test_topics_are_matched_by_level_and_not_by_text():
    retained = RetainedMessages(MemoryTable(), version_of)
    for topic in (b"a", b"a/b", b"ab", b"a/b/c", b"a/", b"/a"):
        retained.set(topic, topic)
    assert sorted(topic for topic, _ in retained.match(b"a/#")) == [b"a", b"a/", b"a/b", b"a/b/c"]
    assert sorted(topic for topic, _ in retained.match(b"a/+")) == [b"a/", b"a/b"]
    assert sorted(topic for topic, _ in retained.match(b"+/a")) == [b"/a"]
    assert [topic for topic, _ in retained.match(b"a")] == [b"a"]


def test_wide_branches_are_branches(monkeypatch):
    monkeypatch.setattr("core.lmq.retained.WIDE_MIN", 4)
    retained = RetainedMessages(MemoryTable(), version_of)
    names = [b"%d" % i for i in range(20)] + [b"a/%d/x" % i for i in range(20)] + [b"a", b"$x/1", b"a/3"]
    for name in names:
        retained.set(name, name)
    assert isinstance(retained._root, WideBranch)
    assert isinstance(retained._root[b"a"], WideBranch)
    for topic_filter in (b"#", b"+", b"a/#", b"a/+/x", b"+/3", b"7", b"a/7/x", b"$x/#"):
        expected = {name for name in names if naive_match(topic_filter, name)}
        found = [topic for topic, _ in retained.match(topic_filter)]
        assert (set(found), len(found)) == (expected, len(expected))
    walk = retained.match(b"#")
    next(walk)
    for name in names:
        retained.remove(name)
    assert list(walk) == list(retained.match(b"#")) == []
    assert len(retained) == len(retained._root) == 0


def test_walk_says_so_when_it_finds_nothing_for_a_while():
    retained = RetainedMessages(MemoryTable(), version_of)
    for number in range(1_000):
        retained.set(b"%d/a" % number, b"12345678")
    assert list(retained.walk(b"+/b")) == [None] * (1_001 // LOOKS_MAX)


@pytest.mark.slow
def test_many_topics_are_given_in_pages():
    retained = RetainedMessages(MemoryTable(), version_of)
    for number in range(100_000):
        retained.set(b"site/%d/state" % number, b"x")
    walk = retained.match(b"#")
    assert len([next(walk) for _ in range(10)]) == 10
    assert sum(1 for _ in walk) == 99_990
    assert [topic for topic, _ in retained.match(b"site/777/#")] == [b"site/777/state"]


@pytest.mark.parametrize("distance", [1, 416, 4_096])
def test_parts_of_what_was_published_in_order_do_not_grow_all_at_once(distance):
    retained = RetainedMessages(MemoryTable(), version_of)
    for i in range(50_000):
        retained.set(b"t/%d" % i, (160 * 1024 * 1024 + i * distance).to_bytes(8, "big"))
    sizes = sorted(map(len, retained._topics._parts))
    assert sizes[-1] - sizes[0] > 40  # as by chance: 195 each, give or take 14
    assert sizes[0] > 100
