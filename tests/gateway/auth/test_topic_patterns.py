from __future__ import annotations

import pytest
from hypothesis import given

from gateway.auth.topic_patterns import covers
from tests.gateway.auth.test_rule_trie import ALL_TOPICS, ASKED, FILTERS, matches, matches_rest


@pytest.mark.parametrize(
    ("rule", "asked", "wide", "is_covered"),
    [
        (b"#", b"#", False, True),
        (b"#", b"#", True, False),
        (b"#", b"$SYS/x", False, False),
        (b"$SYS/#", b"$SYS/+", False, True),
        (b"a/#", b"a", False, True),
        (b"a/#", b"a/+/b", False, True),
        (b"a/#", b"+/b", False, False),
        (b"a/+", b"a/#", False, False),
        (b"a/+", b"a/b", False, True),
        (b"a/+", b"a/+", False, True),
        (b"a/b", b"a/+", False, False),
        (b"+/b", b"a/b", False, True),
        (b"+/#", b"#", True, False),
        (b"a/+/#", b"a/#/b", True, True),
        (b"a/+/#", b"a/#", True, False),
        (b"a/b", b"a/#/b", True, False),
    ],
)
def test_whether_a_rule_is_for_all_of_a_filter(rule, asked, wide, is_covered):
    assert covers(rule.split(b"/"), asked.split(b"/"), wide=wide) == is_covered


@given(FILTERS, ASKED)
def test_what_is_covered_has_no_topic_beside(rule, asked):
    for wide in (False, True):
        if covers(rule, asked, wide=wide):
            for topic in ALL_TOPICS:
                gets = matches_rest(asked, topic.split(b"/")) if wide else matches(asked, topic)
                assert not gets or matches(rule, topic)
