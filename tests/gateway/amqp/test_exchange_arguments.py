from __future__ import annotations

import pytest

from gateway.amqp.errors import AmqpError
from gateway.amqp.exchange_arguments import check_alternate, check_no_headers_behind, find_alternate
from gateway.amqp.exchanges import Exchange, ExchangeTable
from gateway.amqp.field_table import Field

WHAT = "exchange 'x' in vhost '/'"
OTHER = {"alternate-exchange": Field("longstr", b"other")}


def make(name, kind="fanout", alternate=None):
    return Exchange(name, kind, durable=True, auto_delete=False, internal=False, alternate=alternate)


def make_table(*exchanges):
    table = ExchangeTable("/", lambda *_: None, lambda *_: None, lambda: None)
    for exchange in exchanges:
        table.add(exchange)
    return table


def test_an_alternate_is_the_name_of_an_exchange():
    assert find_alternate({}, WHAT) is None
    assert find_alternate(OTHER, WHAT) == "other"
    with pytest.raises(AmqpError, match=r"invalid type 'bool' for arg 'alternate-exchange' in exchange 'x' in vhost"):
        find_alternate({"alternate-exchange": Field("bool", value=True)}, WHAT)


@pytest.mark.parametrize("refuse", [find_alternate, lambda said, what: check_alternate(said, make("x"), what)])
def test_what_has_no_meaning_here_is_refused(refuse):
    with pytest.raises(AmqpError, match="invalid arg 'x-delayed-type' for exchange 'x' in vhost '/': not supported"):
        refuse({"x-delayed-type": Field("longstr", b"direct")}, WHAT)


def test_an_exchange_that_is_there_is_declared_with_its_alternate():
    check_alternate(OTHER, make("x", alternate="other"), WHAT)
    check_alternate({}, make("x"), WHAT)
    with pytest.raises(
        AmqpError, match=r"inequivalent arg 'alternate-exchange' .* received none but current is the val"
    ):
        check_alternate({}, make("x", alternate="other"), WHAT)
    with pytest.raises(AmqpError, match="received 'other' but current is 'another'"):
        check_alternate(OTHER, make("x", alternate="another"), WHAT)


def test_nothing_leads_from_the_topic_space_to_headers():
    first, last, asks, beside = make("first"), make("last", alternate="asks"), make("asks", "headers"), make("beside")
    table = make_table(first, last, asks, beside)
    topic = table.get("amq.topic")
    check_no_headers_behind(table, topic, first)
    table.bind(topic, (first, "#", None))
    check_no_headers_behind(table, first, beside)
    check_no_headers_behind(table, beside, last)
    for source, destination in ((topic, asks), (first, asks), (first, last)):
        with pytest.raises(AmqpError, match="NOT_IMPLEMENTED"):
            check_no_headers_behind(table, source, destination)
