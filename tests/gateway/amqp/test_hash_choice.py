from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from gateway.amqp.errors import AmqpError
from gateway.amqp.hash_choice import HashChoice, parse_weight

VALUES = [b"k%d" % i for i in range(1_500)]
WEIGHTS = st.dictionaries(st.text(max_size=8), st.integers(1, 5), min_size=1, max_size=5)


def make(weights):
    choice = HashChoice()
    for name, weight in weights.items():
        choice.add(name, name.encode(), str(weight))
    return choice


@settings(max_examples=15, deadline=None)
@given(WEIGHTS)
def test_values_are_shared_out_by_the_weights(weights):
    choice = make(weights)
    found = [choice.find(value) for value in VALUES]
    for name, weight in weights.items():
        share = weight / sum(weights.values())
        spread = (len(VALUES) * share * (1 - share)) ** 0.5
        assert abs(found.count(name) - len(VALUES) * share) <= 6 * spread


@settings(max_examples=15, deadline=None)
@given(WEIGHTS, st.integers(1, 5))
def test_only_values_of_a_destination_that_comes_or_goes_move(weights, weight):
    choice = make(weights)
    before = [choice.find(value) for value in VALUES[:300]]
    choice.add("a new one", b"a new one", str(weight))
    after = [choice.find(value) for value in VALUES[:300]]
    assert all(now in (was, "a new one") for was, now in zip(before, after, strict=True))
    choice.remove("a new one", str(weight))
    assert [choice.find(value) for value in VALUES[:300]] == before
    other_order = make(dict(reversed(weights.items())))
    assert [other_order.find(value) for value in VALUES[:300]] == before


def test_the_greatest_weight_of_a_destination_counts():
    choice = make({"a": 1, "b": 1})
    choice.add("a", b"a", "2")
    choice.add("a", b"a", "02")
    assert (choice.weight("a"), len(choice)) == (2, 2)
    choice.remove("a", "2")
    assert choice.weight("a") == 2
    choice.remove("a", "02")
    assert choice.weight("a") == 1
    choice.remove("a", "1")
    choice.remove("b", "1")
    assert choice.find(b"k") is None


def test_a_weight_of_hundreds_of_digits_wins():
    choice = make({"a": 1, "b": 10**250})
    assert {choice.find(value) for value in VALUES[:50]} == {"b"}


@pytest.mark.parametrize(("key", "weight"), [("1", 1), ("+7", 7), ("0010", 10)])
def test_a_weight_is_a_whole_number(key, weight):
    assert parse_weight(key) == weight


@pytest.mark.parametrize("key", ["", "a", "1.5", " 1", "1_0", "١", "1\n"])  # noqa: RUF001 - a digit, but not of ours
def test_another_weight_is_refused(key):
    with pytest.raises(AmqpError, match="The binding key must be an integer: <<") as caught:
        parse_weight(key)
    assert str(caught.value).endswith(f'<<"{key}">>' if key else " <<>>")


@pytest.mark.parametrize("key", ["0", "-3"])
def test_a_weight_is_at_least_one(key):
    with pytest.raises(AmqpError, match="The binding key must be greater than 0"):
        parse_weight(key)
