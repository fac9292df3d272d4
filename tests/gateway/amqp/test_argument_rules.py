from __future__ import annotations

import pytest

from gateway.amqp.argument_rules import RULES, TYPES, parse_age


@pytest.mark.parametrize(
    ("text", "age_ms"),
    [("1s", 1_000), ("2h", 7_200_000), ("0D", 0), ("", -1), ("h", -1), ("1hh", -1), ("1 h", -1), ("-1h", -1)],
)
def test_an_age_is_a_number_and_its_unit(text, age_ms):
    assert parse_age(text) == age_ms


def test_each_argument_is_for_some_type_of_queue():
    assert all(rule.types and set(rule.types) <= set(TYPES) for rule in RULES.values())
