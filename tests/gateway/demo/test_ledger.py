from __future__ import annotations

import pytest

from gateway.demo.ledger import Ledger, make_body, read_key
from gateway.demo.plan import Consumer

READER = Consumer("reader", "mqtt", ("a/#",), qos=1)


@pytest.fixture
def ledger():
    made = Ledger([READER])
    for sequence, topic in enumerate(("a/x", "a/y", "b/x")):
        made.add_sent((1, sequence), topic, make_body((1, sequence), "k", 5))
    return made


def arrive(ledger, sequence, topic, *, body=None, may_be_repeat=False):
    body = body or make_body((1, sequence), "k", 5)
    ledger.arrivals["reader"].add(topic, body, may_be_repeat=may_be_repeat)


def verdict(ledger):
    (one,) = ledger.verdicts()
    return one


def test_all_that_was_asked_for_and_nothing_else_is_good(ledger):
    assert not ledger.is_complete()
    arrive(ledger, 0, "a/x")
    arrive(ledger, 1, "a/y")
    assert ledger.is_complete()
    assert verdict(ledger).is_good
    assert (verdict(ledger).expected, verdict(ledger).received) == (2, 2)


def test_a_message_that_did_not_come_is_missing(ledger):
    arrive(ledger, 0, "a/x")
    assert (verdict(ledger).missing, verdict(ledger).is_good) == (1, False)


def test_a_message_for_others_is_invented_even_if_the_count_is_right(ledger):
    arrive(ledger, 0, "a/x")
    arrive(ledger, 2, "b/x")
    assert (verdict(ledger).missing, verdict(ledger).invented) == (1, 1)


def test_a_message_that_nobody_sent_is_invented(ledger):
    arrive(ledger, 9, "a/x")
    arrive(ledger, 0, "a/x", body=b"\xff")
    assert verdict(ledger).invented == 2


def test_another_topic_or_another_body_is_altered(ledger):
    arrive(ledger, 0, "a/z")
    arrive(ledger, 1, "a/y", body=make_body((1, 1), "k", 6))
    assert verdict(ledger).altered == 2


def test_a_repeat_that_is_said_to_be_one_is_counted_and_allowed(ledger):
    arrive(ledger, 0, "a/x")
    arrive(ledger, 0, "a/x", may_be_repeat=True)
    arrive(ledger, 1, "a/y", may_be_repeat=True)
    assert (verdict(ledger).repeats, verdict(ledger).is_good) == (1, True)


def test_a_repeat_that_is_not_said_to_be_one_is_a_fault(ledger):
    arrive(ledger, 0, "a/x")
    arrive(ledger, 0, "a/x")
    arrive(ledger, 1, "a/y")
    assert (verdict(ledger).unsaid_repeats, verdict(ledger).is_good) == (1, False)


def test_what_was_given_back_must_come_again(ledger):
    arrive(ledger, 0, "a/x")
    arrive(ledger, 1, "a/y")
    ledger.arrivals["reader"].given_back.add((1, 1))
    assert not ledger.is_complete()
    assert (verdict(ledger).not_come_back, verdict(ledger).is_good) == (1, False)
    arrive(ledger, 1, "a/y", may_be_repeat=True)
    assert ledger.is_complete()
    assert verdict(ledger).is_good


def test_a_consumer_that_failed_is_not_good_whatever_it_got(ledger):
    arrive(ledger, 0, "a/x")
    arrive(ledger, 1, "a/y")
    ledger.arrivals["reader"].error = "connection lost"
    assert not verdict(ledger).is_good


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"device":"x","seq":1}', b"\x00\xff"])
def test_a_body_of_no_device_has_no_key(body):
    assert read_key(body) is None


def test_a_body_names_its_message():
    assert read_key(make_body((17, 3), "power", 1)) == (17, 3)
