"""Filters of rules against the plain meaning of MQTT's filters."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from gateway.auth.rule_trie import NO_RULE, RuleTrie

LEVELS = st.sampled_from([b"a", b"b", b"", b"$SYS"])
TOPICS = st.lists(LEVELS, min_size=1, max_size=4).map(b"/".join)
FILTERS = st.lists(st.one_of(LEVELS, st.just(b"+")), min_size=1, max_size=4).flatmap(
    lambda levels: st.sampled_from([levels, [*levels, b"#"], [b"#"]])
)


def matches(levels, topic):
    """Say whether a filter, whose `#` may stand anywhere, matches a topic of MQTT."""
    if levels[0] in {b"+", b"#"} and topic.startswith(b"$"):
        return False
    return matches_rest(levels, topic.split(b"/"))


def matches_rest(levels, topic):
    if not levels:
        return not topic
    if levels[0] == b"#":
        return any(matches_rest(levels[1:], topic[i:]) for i in range(len(topic) + 1))
    return bool(topic) and levels[0] in {b"+", topic[0]} and matches_rest(levels[1:], topic[1:])


def make_trie(filters):
    trie = RuleTrie()
    for number, levels in enumerate(filters):
        trie.add(levels, number)
    return trie


@given(st.lists(FILTERS, max_size=6), TOPICS)
def test_first_rule_of_a_topic_is_the_lowest_that_matches(filters, topic):
    expected = [number for number, levels in enumerate(filters) if matches(levels, topic)]
    assert make_trie(filters).find_first(topic) == min(expected, default=NO_RULE)


ASKED = st.lists(st.one_of(LEVELS, st.sampled_from([b"+", b"#"])), min_size=1, max_size=4)
ALL_TOPICS = [
    b"/".join(levels)
    for levels in [
        [one, *more]
        for one in (b"a", b"b", b"", b"$SYS", b"x")
        for more in ([], [b"a"], [b"b"], [b""], [b"x"], [b"a", b"b"], [b"b", b"a"], [b"x", b"x"], [b"a", b"a", b"a"])
    ]
]


@given(st.lists(FILTERS, max_size=4), ASKED, st.booleans())
def test_no_rule_is_missed_that_shares_a_topic_with_what_is_asked_for(filters, asked, wide):
    found = make_trie(filters).find_overlapping(asked, wide=wide)
    for topic in ALL_TOPICS:
        gets = matches_rest(asked, topic.split(b"/")) if wide else matches(asked, topic)
        if (
            gets
            and (first := min((i for i, levels in enumerate(filters) if matches(levels, topic)), default=None))
            is not None
        ):
            same = [i for i, levels in enumerate(filters) if levels == filters[first]]
            assert found & set(same)


@pytest.mark.parametrize(
    ("rule", "asked", "wide", "overlaps"),
    [
        (b"secret/#", b"#", False, True),
        (b"secret/#", b"+/x", False, True),
        (b"secret/#", b"secret", False, True),
        (b"secret/+", b"secret", False, False),
        (b"a/+/c", b"a/b/+", False, True),
        (b"a/+/c", b"a/b/d", False, False),
        (b"$SYS/#", b"#", False, False),
        (b"$SYS/#", b"#", True, True),
        (b"$SYS/#", b"+/broker", False, False),
        (b"$SYS/#", b"+/broker", True, True),
        (b"#", b"$SYS/x", False, False),
        (b"+/x", b"$SYS/x", True, False),
        (b"a/b/c", b"#/c", True, True),
        (b"a/b/c", b"#/b", True, False),
        (b"a/b/c", b"a/#/b/#/c", True, True),
    ],
)
def test_whether_a_rule_and_a_filter_share_a_topic(rule, asked, wide, overlaps):
    found = make_trie([rule.split(b"/")]).find_overlapping(asked.split(b"/"), wide=wide)
    assert found == ({0} if overlaps else set())


def test_of_equal_filters_the_lowest_number_counts():
    trie = RuleTrie()
    for number in (7, 3, 5):
        trie.add([b"a", b"#"], number)
        trie.add([b"a", b"b"], number + 10)
    assert trie.find_first(b"a/b") == 3
    assert trie.find_overlapping([b"a", b"b"], wide=False) == {3, 13}
