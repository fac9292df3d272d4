from __future__ import annotations

import pytest

from gateway.amqp.errors import AmqpError
from gateway.amqp.exchange_arguments import check_exchange_arguments, find_alternate, find_hashed_by
from gateway.amqp.exchanges import Exchange
from gateway.amqp.field_table import Field

WHAT = "exchange 'x' in vhost '/'"
OTHER = {"alternate-exchange": Field("longstr", b"other")}


def make(name, kind="fanout", alternate=None):
    return Exchange(name, kind, durable=True, auto_delete=False, internal=False, alternate=alternate)


def test_an_alternate_is_the_name_of_an_exchange():
    assert find_alternate({}, WHAT) is None
    assert find_alternate(OTHER, WHAT) == "other"
    with pytest.raises(AmqpError, match=r"invalid type 'bool' for arg 'alternate-exchange' in exchange 'x' in vhost"):
        find_alternate({"alternate-exchange": Field("bool", value=True)}, WHAT)


def test_what_has_no_meaning_here_is_passed_over():
    said = {"x-delayed-type": Field("longstr", b"direct"), "x-odd": Field("long", 1)}
    assert find_alternate(said, WHAT) is None
    check_exchange_arguments(said, make("x"), WHAT)


def test_an_exchange_that_is_there_is_declared_with_its_alternate():
    check_exchange_arguments(OTHER, make("x", alternate="other"), WHAT)
    check_exchange_arguments({}, make("x"), WHAT)
    with pytest.raises(
        AmqpError, match=r"inequivalent arg 'alternate-exchange' .* received none but current is the val"
    ):
        check_exchange_arguments({}, make("x", alternate="other"), WHAT)
    with pytest.raises(AmqpError, match="received 'other' but current is 'another'"):
        check_exchange_arguments(OTHER, make("x", alternate="another"), WHAT)


@pytest.mark.parametrize(("name", "value"), [("hash-header", "device"), ("hash-property", "message_id")])
def test_what_is_hashed_is_said(name, value):
    hashed_by = find_hashed_by({name: Field("longstr", value.encode())}, "x-consistent-hash", WHAT)
    assert hashed_by == (name, value)


def test_other_exchanges_hash_nothing():
    assert find_hashed_by({"hash-header": Field("long", 1)}, "direct", WHAT) is None
