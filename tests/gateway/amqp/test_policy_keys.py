from __future__ import annotations

import pytest

from gateway.amqp.policy_keys import KEYS, NO_MEANING, OPERATORS, find_fault, term_of


@pytest.mark.parametrize(
    ("definition", "fault"),
    [
        ({}, "no policy provided"),
        ({"odd": 1}, '[{<<"odd">>,1}] are not recognised policy settings'),
        ({"max-length": 1, "odd": 1, "odder": 1}, '[{<<"odd">>,1},{<<"odder">>,1}] are not recognised policy settings'),
        ({"max-priority": 1}, '[{<<"max-priority">>,1}] are not recognised policy settings'),
        ({"max-length": -1}, "-1 is not a valid maximum length"),
        ({"max-length": "5"}, '<<"5">> is not a valid maximum length'),
        ({"max-length": True}, "true is not a valid maximum length"),
        ({"max-length-bytes": -1}, "-1 is not a valid maximum length in bytes"),
        ({"message-ttl": -1}, "-1 is not a valid message TTL"),
        ({"expires": 0}, "0 is not a valid queue expiry"),
        ({"overflow": "odd"}, '<<"odd">> is not a valid overflow value'),
        ({"dead-letter-exchange": 5}, "5 is not a valid dead letter exchange name"),
        ({"dead-letter-routing-key": 5}, "5 is not a valid dead letter routing key"),
        ({"alternate-exchange": 5}, "5 is not a valid alternate exchange name"),
        ({"max-age": "5x"}, '<<"5x">> is not a valid max age'),
        ({"delivery-limit": "-1"}, '<<"-1">> is not a valid delivery limit'),
        ({"delivery-limit": True}, "true is not a valid delivery limit"),
        ({"delivery-limit": -1, "member-placement-tag": "ssd", "consumer-disconnected-timeout": 1}, None),
        ({"delayed-retry-type": "all"}, '[{<<"delayed-retry-type">>,<<"all">>}] are not recognised policy settings'),
        ({"shards-per-node": 2}, '[{<<"shards-per-node">>,2}] are not recognised policy settings'),
        ({"queue-mode": "odd"}, '<<"odd">> is not a valid queue-mode value'),
        ({"dead-letter-strategy": "odd"}, '<<"odd">> is not a valid dead letter strategy'),
        ({"queue-version": 5}, "5 is not a valid queue-version value"),
        ({"dead-letter-routing-key": "k", "ha-mode": "all", "max-age": "5D", "consumer-timeout": 1}, None),
    ],
)
def test_what_is_wrong_is_said_in_the_words_of_rabbitmq(definition, fault):
    assert find_fault(definition, is_operator=False) == fault


def test_operators_set_limits_only():
    assert find_fault({"max-length": 1, "message-ttl": 1}, is_operator=True) is None
    assert find_fault({"overflow": "drop-head", "queue-version": 2}, is_operator=True) is None
    fault = '[{<<"max-age">>,<<"1D">>}] are not recognised policy settings'
    assert find_fault({"max-age": "1D"}, is_operator=True) == fault
    assert set(OPERATORS) <= {**KEYS, **NO_MEANING}.keys()


def test_values_are_written_as_in_erlang():
    assert [term_of(value) for value in (1, "a", None, False)] == ["1", '<<"a">>', "null", "false"]
