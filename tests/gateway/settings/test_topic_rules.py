"""Rules for topics: which patterns and filters are taken."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings, strategies as st
from pydantic import ValidationError

from gateway.plain_errors import tell_wrong
from gateway.settings.topic_rules import AutoSubscription, RewriteRule, check_pattern

GOOD = [
    "^x/y/(.+)$",
    "^([^/]+)/([^/]+)/(.+)$",
    "^a(?:b)?c/(\\d+)/end$",
    "^[^/]*/[a-z]{1,8}/.*$",
    "^x\\.y/\\w+$",
    "^$",
    "^[]x]+/.+",
    "^lazy/(.+?)$",
]
BAD = {
    "x/(.+)": "begin with",
    "^(.+)/(.+)$": "could take long",
    "^(a+)+$": "not taken here",
    "^(a|b)$": "not taken here",
    "^a+a+$": "could take long",
    "^[^/]+[^/]+x": "could take long",
    "^(.)\\1": "not taken here",
    "^(?=a)": "not taken here",
    "^(": "not a regular expression",
    "^a?b?c?d?e?": "may be missing",
    "^a$b": "not taken here",
    "^é": "ASCII",
    "^" + "a" * 1_100: "longer",
}


@pytest.mark.parametrize("pattern", GOOD)
def test_patterns_that_are_quick_are_taken(pattern):
    assert check_pattern(pattern) == pattern


@pytest.mark.parametrize("pattern", BAD)
def test_others_are_refused(pattern):
    with pytest.raises(ValueError, match=BAD[pattern]):
        check_pattern(pattern)


@settings(max_examples=300, deadline=None)
@given(st.text("ab/.+*?[]^()$\\{}1,d", max_size=20), st.sampled_from([b"a", b"ab", b"a/", b"/"]))
def test_what_is_taken_is_quick_on_long_topics(text, piece):
    try:
        check_pattern("^" + text)
    except ValueError:
        return
    pattern = re.compile(b"^" + text.encode())
    topic = piece * (4_096 // len(piece)) + b"!"
    start = time.perf_counter()
    pattern.match(topic)
    assert time.perf_counter() - start < 0.5


@pytest.mark.parametrize("source", ["", "a/#/b", "a+", "a/b#"])
def test_filters_must_be_filters(source):
    with pytest.raises(ValidationError):
        RewriteRule(source=source, pattern="^a", destination="b")
    with pytest.raises(ValidationError):
        AutoSubscription(filter=source)


def test_rules_are_shown_in_one_line():
    assert str(RewriteRule(source="a/#", pattern="^a/(.+)", destination="b/$1")) == "all a/# ^a/(.+) -> b/$1"
    assert str(AutoSubscription(filter="cmd/${clientid}", qos=1)) == "cmd/${clientid} at 1"


@pytest.mark.parametrize(
    ("pattern", "destination", "said"),
    [
        ("^x/(.+)$", "y/$2", "destination has [$]2, and the pattern 1 group$"),
        ("^x$", "$1", "destination has [$]1, and the pattern no groups$"),
    ],
)
def test_a_destination_has_no_group_that_the_pattern_has_not(pattern, destination, said):
    assert RewriteRule(source="#", pattern="^(a)/(b)$", destination="$2/$1").destination == "$2/$1"
    with pytest.raises(ValidationError) as caught:
        RewriteRule(source="#", pattern=pattern, destination=destination)
    assert re.search(said, tell_wrong(caught.value.errors())[0].text)
