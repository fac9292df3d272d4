"""Light-queue names: reversible, in the alphabet, bounded."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from core.lmq.queue_name import (
    NAME_BYTES_MAX,
    amqp_crossing_name,
    amqp_passing_name,
    amqp_queue_name,
    amqp_refused_name,
    is_amqp,
    is_crossing,
    is_light,
    mqtt_queue_name,
    parse_queue_name,
)

ALPHABET = re.compile(rb"[A-Za-z0-9_%|-]+")
HASHED = re.compile(rb"%LMQ%(?:mqtt|amqp)%\|z[0-9a-f]{40}")
text = st.one_of(st.binary(max_size=200), st.text("ab/+#%|.0fz", max_size=60).map(str.encode))


@pytest.mark.parametrize(
    ("topic_filter", "name"),
    [
        (b"a/b", b"%LMQ%mqtt%a%b"),
        (b"site/+/dev/7/#", b"%LMQ%mqtt%site%|p%dev%7%|h"),
        (b"$SYS/x", b"%LMQ%mqtt%|24SYS%x"),
        (b"100%|", b"%LMQ%mqtt%100|25|7c"),
        ("grün".encode(), b"%LMQ%mqtt%gr|c3|bcn"),
        (b"", b"%LMQ%mqtt%"),
    ],
)
def test_filter_has_the_name_that_the_rules_give(topic_filter, name):
    assert mqtt_queue_name(topic_filter) == name
    assert parse_queue_name(name) == (b"mqtt", (topic_filter,))


def test_amqp_queue_of_the_default_vhost_has_a_readable_name():
    assert amqp_queue_name(b"/", b"orders.new") == b"%LMQ%amqp%|2f%orders|2enew"
    assert is_amqp(b"%LMQ%amqp%|2f%orders|2enew")
    assert not is_amqp(mqtt_queue_name(b"amqp/x"))
    assert parse_queue_name(b"%LMQ%amqp%|2f%orders|2enew") == (b"amqp", (b"/", b"orders.new"))


def test_slash_in_a_vhost_is_not_taken_for_its_end():
    assert amqp_queue_name(b"a/b", b"c") != amqp_queue_name(b"a", b"b/c")


@given(text)
def test_filter_comes_back_or_the_name_is_hashed(topic_filter):
    name = mqtt_queue_name(topic_filter)
    assert len(name) <= NAME_BYTES_MAX
    assert ALPHABET.fullmatch(name)
    assert is_light(name)
    if HASHED.fullmatch(name):
        assert parse_queue_name(name) is None
    else:
        assert parse_queue_name(name) == (b"mqtt", (topic_filter,))


@given(text, text)
def test_vhost_and_queue_come_back_or_the_name_is_hashed(vhost, queue):
    name = amqp_queue_name(vhost, queue)
    assert len(name) <= NAME_BYTES_MAX
    assert ALPHABET.fullmatch(name)
    assert parse_queue_name(name) == (None if HASHED.fullmatch(name) else (b"amqp", (vhost, queue)))


@given(st.text("ab%|phz0f2-", max_size=30).map(lambda tail: b"%LMQ%" + tail.encode()))
def test_only_names_that_we_would_make_are_parsed(name):
    parsed = parse_queue_name(name)
    if parsed is not None:
        kind, parts = parsed
        assert (mqtt_queue_name(*parts) if kind == b"mqtt" else amqp_queue_name(*parts)) == name


@pytest.mark.parametrize(
    "name",
    [b"", b"orders", b"%LMQ%other", b"%LMQ%mqtt", b"%LMQ%mqtt%|41", b"%LMQ%mqtt%|", b"%LMQ%mqtt%a.b", b"%LMQ%amqp%q"],
)
def test_foreign_names_are_not_parsed(name):
    assert parse_queue_name(name) is None
    assert not HASHED.fullmatch(name)


def test_longest_name_that_fits_is_not_hashed():
    assert parse_queue_name(mqtt_queue_name(b"x" * 117)) == (b"mqtt", (b"x" * 117,))
    assert HASHED.fullmatch(mqtt_queue_name(b"x" * 118))
    assert mqtt_queue_name(b"x" * 118) != mqtt_queue_name(b"x" * 119)
    assert HASHED.fullmatch(amqp_queue_name(b"/", b"x" * 200))


@given(st.binary(min_size=1), st.binary(), st.integers(1, 10**9))
def test_no_queue_has_the_name_of_a_light_queue_by_number(vhost, queue, number):
    name = amqp_passing_name(vhost, number)
    assert is_amqp(name)
    assert len(name) <= 127
    assert parse_queue_name(name) is None
    assert name != amqp_queue_name(vhost, queue)
    assert name != amqp_passing_name(vhost, number + 1)
    assert amqp_passing_name(b"/", 7) == b"%LMQ%amqp%|2f%|t7"


@given(text, text)
def test_what_a_queue_refuses_has_a_place_of_its_own_that_is_no_queues(vhost, queue):
    of = amqp_queue_name(vhost, queue)
    name = amqp_refused_name(of)
    assert len(name) <= NAME_BYTES_MAX
    assert is_amqp(name)
    assert parse_queue_name(name) is None
    assert name not in {of, amqp_passing_name(vhost, 1), amqp_refused_name(amqp_passing_name(vhost, 1))}


@given(vhost=text, queue=text)
def test_no_queue_is_called_as_an_exchange_is_whatever_its_virtual_host_begins_with(vhost, queue):
    assert not is_crossing(amqp_queue_name(b"#" + vhost, queue))
    assert amqp_queue_name(b"#" + vhost, queue) != amqp_crossing_name(vhost, queue)
    assert is_crossing(amqp_crossing_name(b"/", b"by-kind"))
