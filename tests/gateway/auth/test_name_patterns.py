from __future__ import annotations

import time

import pytest
from hypothesis import given, strategies as st

from gateway.auth.name_patterns import NameIndex, compile_any, compile_pattern, fill_in, fill_in_topic, has_place
from gateway.auth.rule_trie import NO_RULE


@pytest.mark.parametrize(
    ("pattern", "names", "others"),
    [
        ("jobs", ["jobs"], ["job", "jobs1", ""]),
        ("jobs.*", ["jobs.", "jobs.a", "jobs.a\nb"], ["jobs", "jobsxa", "my.jobs.a"]),
        ("j?bs", ["jobs", "j.bs"], ["jbs", "joobs"]),
        ("*", ["", "a"], []),
        ("a[b]+", ["a[b]+"], ["ab", "abb"]),
        ("re:^tmp[0-9]+$", ["tmp1"], ["tmp", "xtmp1", "tmp1x"]),
        ("re:tmp", ["tmp", "xtmpx"], ["tm"]),
        ("é*", ["é", "éa"], ["e"]),
    ],
)
def test_names_of_a_pattern(pattern, names, others):
    is_one = compile_pattern(pattern)
    index = NameIndex()
    index.add(pattern, 4)
    for name in names:
        assert is_one(name)
        assert index.find_first(name) == 4
    for name in others:
        assert not is_one(name)
        assert index.find_first(name) == NO_RULE


def test_any_of_several_patterns_is_enough():
    is_one = compile_any(["ann", "b*"])
    assert [name for name in ("ann", "bob", "cyd", "") if is_one(name)] == ["ann", "bob"]
    assert not compile_any([])("ann")


PATTERNS = st.sampled_from(["a", "ab", "a*", "*", "a?", "re:b", "re:^ab$"])


@given(st.lists(PATTERNS, max_size=6), st.sampled_from(["a", "ab", "abc", "b"]))
def test_first_rule_of_a_name_is_the_lowest_that_is_for_it(patterns, name):
    index = NameIndex()
    for number, pattern in enumerate(patterns):
        index.add(pattern, number)
    expected = [number for number, pattern in enumerate(patterns) if compile_pattern(pattern)(name)]
    assert index.find_first(name) == min(expected, default=NO_RULE)


def test_user_and_client_stand_for_themselves_and_for_no_pattern():
    assert fill_in("%u.inbox", "bob", "") == "bob.inbox"
    for user in ("*", "re:.", "b?b", "x.*"):
        is_one = compile_pattern(fill_in("%u.inbox", user, ""))
        assert is_one(f"{user}.inbox")
        assert not is_one("bob.inbox")
    is_one = compile_pattern(fill_in("re:^%u-[0-9]$", "b.b", ""))
    assert is_one("b.b-1")
    assert not is_one("bob-1")
    is_one = compile_pattern(fill_in("%u-*", "b*b", ""))
    assert is_one("b*b-1")
    assert not is_one("bob-1")


def test_who_has_no_name_has_no_place_of_their_own():
    assert fill_in("%u", "", "c") is None
    assert fill_in("%c", "u", "") is None
    assert fill_in("plain", "", "") == "plain"
    assert fill_in_topic("d/%c", "u", "") is None


def test_a_client_whose_name_is_a_wildcard_gets_no_topics_by_it():
    assert fill_in_topic("d/%c/#", "", "dev-1") == "d/dev-1/#"
    assert fill_in_topic("d/%c/#", "", "site/dev-1") == "d/site/dev-1/#"
    for client in ("+", "#", "a+", "a/#"):
        assert fill_in_topic("d/%c/#", "", client) is None


def test_a_client_gets_no_topics_of_the_gateway_by_its_name():
    for client in ("$SYS", "$events", "$events/mqtt"):
        assert fill_in_topic("%c/#", "", client) is None
        assert fill_in_topic("%u%c/#", client, "x") is None
        assert fill_in_topic("d/%c/#", "", client) == f"d/{client}/#"
        assert fill_in_topic("$SYS/%c", "", client) == f"$SYS/{client}"


def test_places_are_found():
    assert [pattern for pattern in ("a", "%u", "x%c", "%x") if has_place(pattern)] == ["%u", "x%c"]


def test_a_hostile_expression_is_linear_in_the_name():
    is_one = compile_pattern("re:^(a+)+$")
    begun = time.perf_counter()
    assert not is_one("a" * 20_000 + "b")
    assert time.perf_counter() - begun < 1
