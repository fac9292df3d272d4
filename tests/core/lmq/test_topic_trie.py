"""The trie says the same as a naive matcher, in bounded work."""

from __future__ import annotations

import random
import time
from functools import cache

import pytest
from hypothesis import given, strategies as st

from core.lmq.topic_trie import WIDE_MIN, TopicTrie, is_wildcard

levels = st.sampled_from([b"a", b"b", b"", b"$x"])
topics = st.lists(levels, min_size=0, max_size=6).map(b"/".join)
filters = st.lists(st.one_of(levels, st.sampled_from([b"+", b"#"])), min_size=0, max_size=6).map(b"/".join)
entries = st.tuples(filters, st.integers(0, 5), st.booleans())


def naive_match(topic_filter, topic, hides_dollar=False):
    pattern = topic_filter.split(b"/") if topic_filter else []
    words = topic.split(b"/") if topic else []
    if hides_dollar and topic.startswith(b"$") and pattern and pattern[0] in {b"+", b"#"}:
        return False

    @cache
    def go(i, j):
        if i == len(pattern):
            return j == len(words)
        if pattern[i] == b"#":
            return go(i + 1, j) or (j < len(words) and go(i, j + 1))
        return j < len(words) and pattern[i] in {b"+", words[j]} and go(i + 1, j + 1)

    return go(0, 0)


def matched(trie, topic):
    out = []
    trie.match(topic, out)
    return out


@pytest.mark.parametrize(
    ("topic_filter", "topic", "expected"),
    [
        (b"a/b", b"a/b", True),
        (b"a/b", b"a/b/", False),
        (b"a/#", b"a", True),
        (b"a/#", b"a/b/c", True),
        (b"a/+", b"a", False),
        (b"a/+", b"a/", True),
        (b"+", b"", False),
        (b"#", b"", True),
        (b"#/b", b"b", True),
        (b"#/b", b"a/a/b", True),
        (b"#/b", b"b/a", False),
        (b"a/#/b/#/c", b"a/b/c", True),
        (b"a/#/b/#/c", b"a/x/b/y/z/c", True),
        (b"a/#/b/#/c", b"a/x/y/z/c", False),
        (b"#/#", b"a", True),
        (b"a+/b", b"a+/b", True),
        (b"a+/b", b"ax/b", False),
    ],
)
def test_one_filter_matches_as_the_rules_say(topic_filter, topic, expected):
    trie = TopicTrie()
    trie.insert(topic_filter, 1)
    assert matched(trie, topic) == ([1] if expected else [])
    assert list(trie.explain(topic)) == ([topic_filter] if expected else [])
    assert naive_match(topic_filter, topic) == expected


@given(st.lists(entries, max_size=12), st.lists(topics, max_size=6))
def test_trie_matches_what_a_naive_matcher_does(inserted, asked):
    trie = TopicTrie()
    for topic_filter, value, hides in inserted:
        trie.insert(topic_filter, value, hides_dollar=hides)
    for topic in asked:
        expected = {value for topic_filter, value, hides in inserted if naive_match(topic_filter, topic, hides)}
        found = matched(trie, topic)
        assert sorted(found) == sorted(expected)
        explained = trie.explain(topic)
        assert {value for values in explained.values() for value in values} == expected
        assert set(explained) == {f for f, _, hides in inserted if naive_match(f, topic, hides)}


@given(st.lists(entries, max_size=12), st.lists(st.integers(0, 11), max_size=12), topics)
def test_removing_undoes_inserting_one_by_one(inserted, order, topic):
    trie = TopicTrie()
    left = []
    for topic_filter, value, _ in inserted:
        is_new = (topic_filter, value) not in left
        assert trie.insert(topic_filter, value) is is_new
        left.append((topic_filter, value))
    for i in order:
        if i < len(left):
            topic_filter, value = left.pop(i)
            assert trie.remove(topic_filter, value) is ((topic_filter, value) not in left)
    assert sorted(matched(trie, topic)) == sorted({value for f, value in left if naive_match(f, topic)})
    assert len(trie) == len(set(left))
    for topic_filter, value in left:
        trie.remove(topic_filter, value)
    assert len(trie) == 0
    assert matched(trie, topic) == []


def test_removing_what_is_not_there_raises_key_error():
    trie = TopicTrie()
    trie.insert(b"a/+", 1)
    trie.insert(b"a/b", 1)
    for topic_filter, value in ((b"a/+", 2), (b"a/b", 2), (b"a/+/#", 1), (b"x/#", 1), (b"a", 1)):
        with pytest.raises(KeyError):
            trie.remove(topic_filter, value)
    assert matched(trie, b"a/b") == [1]


def test_value_under_several_filters_is_reported_once_and_appended():
    trie = TopicTrie()
    for topic_filter in (b"a/b", b"a/+", b"#", b"#/b", b"a/#"):
        trie.insert(topic_filter, b"q")
    out = ["before"]
    trie.match(b"a/b", out)
    assert out == ["before", b"q"]


def test_dollar_topics_are_hidden_from_leading_wildcards_of_hiding_filters_only():
    trie = TopicTrie()
    for topic_filter in (b"#", b"+/x", b"$SYS/#", b"$SYS/+"):
        trie.insert(topic_filter, b"mqtt " + topic_filter, hides_dollar=True)
    trie.insert(b"#", b"amqp #")
    assert sorted(matched(trie, b"$SYS/x")) == [b"amqp #", b"mqtt $SYS/#", b"mqtt $SYS/+"]
    assert sorted(matched(trie, b"a/x")) == [b"amqp #", b"mqtt #", b"mqtt +/x"]
    assert trie.remove(b"#", b"mqtt #")
    assert trie.remove(b"#", b"amqp #")


def test_wildcards_are_whole_levels():
    assert is_wildcard(b"a/+")
    assert is_wildcard(b"#")
    assert not is_wildcard(b"a+/b#")
    assert not is_wildcard(b"")


def test_many_hashes_cost_work_in_proportion_to_the_levels():
    trie = TopicTrie()
    deepest = b"/".join([b"#/a"] * 100)
    for depth in range(1, 101):
        trie.insert(b"/".join([b"#/a"] * depth), depth)
        trie.insert(b"/".join([b"#/+"] * depth) + b"/#", -depth)
    topic = b"/".join([b"a"] * 200)
    start = time.process_time()
    assert len(matched(trie, topic)) == 200
    assert len(matched(trie, topic + b"/b")) == 100
    assert deepest in trie.explain(topic)
    assert time.process_time() - start < 2.0  # 2^100 steps would not end


def test_wide_tries_with_values_under_many_filters_match_what_a_naive_matcher_does():
    chosen = random.Random(7)
    words = [b"w%d" % number for number in range(12)] + [b"", b"a+", b"#b", b"$x"]
    inserted = []
    trie = TopicTrie()
    for number in range(300):
        parts = chosen.choices([*words, b"+", b"+", b"#"], k=chosen.randrange(1, 6))
        topic_filter = b"/".join(parts)
        inserted.append((topic_filter, b"v%d" % (number % 40), chosen.random() < 0.5))
        trie.insert(topic_filter, inserted[number][1], hides_dollar=inserted[number][2])
    for round_number in range(3):
        for _ in range(30):
            topic = b"/".join(chosen.choices(words, k=chosen.randrange(1, 7)))
            expected = {value for topic_filter, value, hides in inserted if naive_match(topic_filter, topic, hides)}
            assert sorted(matched(trie, topic)) == sorted(expected)
        for _ in range(100 if round_number < 2 else 0):
            topic_filter, value, hides = inserted.pop(chosen.randrange(len(inserted)))
            trie.remove(topic_filter, value)
            if (topic_filter, value, not hides) in inserted:  # one of the two went: the hiding one
                inserted.remove((topic_filter, value, not hides))
                inserted.append((topic_filter, value, False))


def test_siblings_that_come_and_go_leave_the_others():
    trie = TopicTrie()
    filters_of = [b"+/%d/x" % number for number in range(5)]
    for topic_filter in filters_of:
        trie.insert(topic_filter, topic_filter)
    for kept in range(4, -1, -1):
        for number in range(5):
            expected = [filters_of[number]] if number <= kept else []
            assert matched(trie, b"a/%d/x" % number) == expected
            assert matched(trie, b"a/%d/y" % number) == []
        trie.remove(filters_of[kept], filters_of[kept])
    trie.insert(b"+/7/x", 7)
    assert matched(trie, b"a/7/x") == [7]


def test_thousands_of_states_a_level_are_followed_to_the_end():
    trie = TopicTrie()
    for number in range(1500):
        trie.insert(b"#/" + b"+/" * number + b"end", number)
    assert sorted(matched(trie, b"a/" * 1000 + b"end")) == list(range(1001))
    assert sorted(matched(trie, b"a/" * 2000 + b"end")) == list(range(1500))
    assert matched(trie, b"a/" * 2000) == []


def test_very_deep_filters_and_topics_hit_no_recursion_limit():
    trie = TopicTrie()
    depth = 30_000
    for level in (b"+", b"a"):
        trie.insert(b"/".join([level] * depth) + b"/+", level)
    trie.insert(b"/".join([b"#"] * 128) + b"/+", b"#")
    trie.insert(b"/".join([b"+"] * depth), b"one less")
    topic = b"/".join([b"a"] * (depth + 1))
    assert sorted(matched(trie, topic)) == [b"#", b"+", b"a"]
    trie.remove(b"/".join([b"a"] * depth) + b"/+", b"a")
    assert sorted(matched(trie, topic[2:])) == [b"#", b"one less"]
    del trie  # takes thousands of nested nodes apart


def test_thousands_of_levels_under_one_come_and_go():
    trie = TopicTrie()
    count = 2 * WIDE_MIN
    for number in range(count):
        trie.insert(b"fleet/%d/+" % number, number)
        trie.insert(b"fleet/%d/state" % number, -number)
    for left in (count, WIDE_MIN // 4, 2):
        for number in range(left, count):
            trie.remove(b"fleet/%d/+" % number, number)
            trie.remove(b"fleet/%d/state" % number, -number)
        count = left
        assert len(trie) == 2 * left
        for number in {0, 1, left // 2, left - 1}:
            assert found_by(trie, b"fleet/%d/state" % number) == {number, -number}
            assert found_by(trie, b"fleet/%d/else" % number) == {number}
            assert set(trie.explain(b"fleet/%d/state" % number)) == {b"fleet/%d/state" % number, b"fleet/%d/+" % number}
        assert found_by(trie, b"fleet/%d/state" % left) == set()


def found_by(trie, topic):
    found = []
    trie.match(topic, found)
    return set(found)
