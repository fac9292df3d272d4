"""Routing keys and topics are two ways to write the same thing."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, strategies as st

from core.lmq.topic_space import (
    binding_key_from_filter,
    filter_from_binding_key,
    routing_key_from_topic,
    split_levels,
    topic_from_routing_key,
)

pieces = st.sampled_from(
    [b".", b"/", b"%", b"25", b"2F", b"2E", b"2B", b"23", b"2A", b"*", b"+", b"#", b"a", b"\xc3\xbc"]
)
keys = st.one_of(st.lists(pieces, max_size=12).map(b"".join), st.binary(max_size=40))
topics = keys.map(lambda key: key.replace(b"+", b"").replace(b"#", b""))
filters = st.lists(
    st.one_of(st.sampled_from([b"+", b"#"]), topics.map(lambda t: t.replace(b"/", b""))), min_size=1, max_size=6
).map(b"/".join)


@pytest.mark.parametrize(
    ("routing_key", "topic"),
    [
        (b"a.b.c", b"a/b/c"),
        (b"", b""),
        (b".a..", b"/a//"),
        (b"file/name.txt", b"file%2Fname/txt"),
        (b"v1%2E5.temp", b"v1.5/temp"),
        (b"100%", b"100%"),
        (b"%25", b"%25"),
        (b"a%2Fb", b"a%252Fb"),
        (b"a%252Eb", b"a%2Eb"),
        (b"a+b.#", b"a%2Bb/%23"),
        (b"a.*.b", b"a/%2A/b"),
        (b"a.%2A.b", b"a/*/b"),
        (b"a*.b", b"a*/b"),
        (b"%2f", b"%2f"),
    ],
)
def test_routing_key_and_topic_say_the_same(routing_key, topic):
    assert topic_from_routing_key(routing_key) == topic
    assert routing_key_from_topic(topic) == routing_key


@pytest.mark.parametrize(
    ("binding_key", "topic_filter"),
    [
        (b"a.*.#", b"a/+/#"),
        (b"#.a.#", b"#/a/#"),
        (b"+.a#", b"%2B/a%23"),
        (b"%2A", b"*"),
        (b"a/b.*", b"a%2Fb/+"),
    ],
)
def test_binding_key_and_filter_say_the_same(binding_key, topic_filter):
    assert filter_from_binding_key(binding_key) == topic_filter
    assert binding_key_from_filter(topic_filter) == binding_key


@given(keys)
def test_routing_key_comes_back_and_its_topic_is_legal(routing_key):
    topic = topic_from_routing_key(routing_key)
    assert b"+" not in topic
    assert b"#" not in topic
    assert routing_key_from_topic(topic) == routing_key


@given(topics)
def test_topic_comes_back(topic):
    assert topic_from_routing_key(routing_key_from_topic(topic)) == topic


@given(keys)
def test_binding_key_comes_back(binding_key):
    assert binding_key_from_filter(filter_from_binding_key(binding_key)) == binding_key


@given(filters)
def test_filter_comes_back_unless_it_has_a_literal_word_that_amqp_cannot_bind(topic_filter):
    assume(not {b"%2A", b"%23"} & set(topic_filter.split(b"/")))
    assert filter_from_binding_key(binding_key_from_filter(topic_filter)) == topic_filter


@given(keys)
def test_word_count_is_kept(routing_key):
    assert routing_key.count(b".") == topic_from_routing_key(routing_key).count(b"/")


def test_empty_topic_has_no_level_and_empty_levels_count():
    assert split_levels(b"") == []
    assert split_levels(b"/") == [b"", b""]
    assert split_levels(b"a//b") == [b"a", b"", b"b"]
