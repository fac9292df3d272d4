from __future__ import annotations

import math

import pytest

from core.queues.terms import QueueTerms
from gateway.amqp.argument_rules import check_integer
from gateway.amqp.errors import AmqpError
from gateway.amqp.field_table import Field
from gateway.amqp.queue_arguments import (
    check_arguments,
    check_same_arguments,
    find_terms,
    find_unkept,
)

WHAT = "queue 'q' in vhost '/'"


def number(value, kind="signedint"):
    return Field(kind, value)


def text(value):
    return Field("longstr", value)


def refused(call, *args):
    with pytest.raises(AmqpError) as caught:
        call(*args)
    assert caught.value.code == 406
    return caught.value.reason


def test_what_means_something_is_kept():
    given = {
        "x-queue-type": text(b"classic"),
        "x-queue-mode": text(b"lazy"),
        "x-message-ttl": number(0),
        "x-expires": number(1),
        "odd": text(b"mine"),
    }
    assert list(check_arguments(given, WHAT)) == [
        "x-expires",
        "x-message-ttl",
        "x-queue-mode",
        "x-queue-type",
        "odd",
    ]
    assert check_arguments({}, WHAT) == {}


@pytest.mark.parametrize(
    ("name", "field", "why"),
    [
        ("x-queue-type", text(b"odd"), "\"unsupported queue type 'odd'\""),
        ("x-queue-leader-locator", text(b"odd"), "invalid_queue_locator_arg"),
        ("x-queue-type", number(1), "{unacceptable_type,signedint}"),
        ("x-queue-mode", text(b"brisk"), "\"unsupported queue mode 'brisk'\""),
        ("x-message-ttl", number(-1), "{value_negative,-1}"),
        ("x-message-ttl", number(315_360_000_001), "{value_too_large,315360000001}"),
        ("x-message-ttl", Field("bool", value=True), '"expected integer, got bool"'),
        ("x-expires", number(0), "{value_zero,0}"),
        ("x-max-length-bytes", number(-1), "{value_negative,-1}"),
        ("x-max-length", number(-1), "{value_negative,-1}"),
        ("x-overflow", text(b"some"), "invalid_overflow"),
        ("x-overflow", number(1), "{unacceptable_type,signedint}"),
    ],
)
def test_what_is_wrong_is_said_in_the_words_of_rabbitmq(name, field, why):
    assert refused(check_arguments, {name: field}, WHAT) == f"invalid arg '{name}' for {WHAT}: {why}"


def test_what_is_kept_is_one_value():
    given = {
        "x-message-ttl": number(500),
        "x-dead-letter-exchange": text(b""),
        "x-dead-letter-routing-key": text(b"dead"),
        "x-max-length": number(7),
        "x-overflow": text(b"drop-head"),
    }
    terms = find_terms(check_arguments(given, WHAT))
    assert terms == QueueTerms(500, -1, "", "dead", 7)


def test_the_same_number_of_another_width_is_the_same():
    check_same_arguments({"x-expires": number(5, "long")}, {"x-expires": number(5, "byte")}, WHAT)
    check_same_arguments({"x-queue-type": text(b"classic"), "odd": number(1)}, {}, WHAT)
    check_same_arguments({}, {"x-queue-type": text(b"classic")}, WHAT)


@pytest.mark.parametrize(
    ("received", "current", "said"),
    [
        (number(5), number(6), "received '5' but current is '6'"),
        (text(b"5"), number(5), "received '5' but current is '5'"),
        (None, number(5), "received none but current is the value '5' of type 'signedint'"),
        (Field("bool", value=True), None, "received the value 'true' of type 'bool' but current is none"),
        (text(b"\xffa"), None, "received the value '\ufffda' of type 'longstr' but current is none"),
    ],
)
def test_what_differs_is_said(received, current, said):
    both = [{"x-expires": one} if one else {} for one in (received, current)]
    assert refused(check_same_arguments, *both, WHAT) == f"inequivalent arg 'x-expires' for {WHAT}: {said}"


def test_what_nobody_knows_is_kept_where_it_is_small_and_means_nothing():
    table, fraction, endless = Field("table", b""), Field("double", 1.5), Field("float", math.inf)
    given = {"x-odd": number(1), "max-length": number(1), "is": Field("bool", True), "t": table, "f": fraction}
    kept = check_arguments({**given, "e": endless}, WHAT)
    assert list(kept) == ["x-odd", "max-length", "is", "f"]
    assert set(find_unkept({**given, "e": endless, "x-max-length": number(1)})) == {"t", "e"}
    assert find_terms(kept) == find_terms({})
    check_same_arguments({"x-odd": number(1)}, {}, WHAT)
    check_same_arguments({}, {"x-queue-mode": text(b"lazy"), **kept}, WHAT)
    much = {f"n{i}": text(b"x" * 250) for i in range(200)}
    assert len(check_arguments(much, WHAT)) == 4


def test_whole_numbers_are_told_from_others():
    assert check_integer(number(7, "unsignedshort"), "a") == 7
    assert refused(check_integer, Field("double", 1.0), "a") == 'a: "expected integer, got double"'


def test_what_means_nothing_to_a_queue_of_its_type_may_be_said_of_it_again():
    for said in ({"x-delivery-limit": number(3)}, {"x-max-age": text(b"1D")}, {"x-max-in-memory-length": text(b"a")}):
        check_same_arguments(said, {}, WHAT)
    quorum = {"x-queue-type": text(b"quorum")}
    check_same_arguments({**quorum, "x-max-priority": number(3)}, quorum, WHAT)
    assert "x-delivery-limit" in refused(check_same_arguments, {**quorum, "x-delivery-limit": number(3)}, quorum, WHAT)


def test_a_moment_is_the_number_that_it_is():
    check_same_arguments({"x-message-ttl": number(10, "timestamp")}, {"x-message-ttl": number(10)}, WHAT)


def test_an_unknown_type_is_another_than_that_of_the_queue():
    said = refused(check_same_arguments, {"x-queue-type": text(b"odd")}, {}, WHAT)
    assert said.endswith("received the value 'odd' of type 'longstr' but current is none")


def test_of_two_wrong_arguments_the_one_is_named_that_rabbitmq_names():
    said = {"x-delivery-limit": number(1), "x-max-length": text(b"a")}
    assert "'x-max-length'" in refused(check_arguments, said, WHAT)  # values first, then what is for other types
    said = {"x-dead-letter-exchange": number(1), "x-queue-type": text(b"odd")}
    assert "x-dead-letter-exchange" in refused(check_arguments, said, WHAT)


def test_another_type_is_named_behind_all_else_that_differs():
    said = {"x-queue-type": text(b"quorum"), "x-single-active-consumer": Field("bool", True)}
    assert "'x-single-active-consumer'" in refused(check_same_arguments, said, {}, WHAT)
