from __future__ import annotations

import io

from rich.console import Console

from gateway.demo.ledger import Ledger, make_body
from gateway.demo.plan import CONSUMERS
from gateway.demo.screen import Rates, live_view, verdict_view


def shown(view):
    console = Console(file=io.StringIO(), width=140)
    console.print(view)
    return console.file.getvalue()


def test_the_live_table_has_a_row_for_each_consumer():
    ledger = Ledger(CONSUMERS)
    ledger.add_sent((1, 0), "plant/south/line1/device-0001/alarm", b"x")
    text = shown(live_view(ledger, Rates(), "live", 5, 1.0))
    assert all(consumer.name in text for consumer in CONSUMERS)
    assert "5 devices connected, 1 messages sent" in text


def test_the_verdict_says_exact_or_wrong_and_why():
    ledger = Ledger(CONSUMERS[:2])
    assert shown(verdict_view(ledger.verdicts())).count("exact") == 2
    ledger.arrivals["control room"].add("t", make_body((1, 1), "k", 1), may_be_repeat=False)
    ledger.arrivals["control room"].error = "connection lost [bold]"
    text = shown(verdict_view(ledger.verdicts()))
    assert text.count("WRONG") == 1
    assert "control room: connection lost [bold]" in text


def test_rates_are_taken_over_half_a_second_or_more():
    rates = Rates()
    assert rates.update("x", 0, 10.0) == 0
    assert rates.update("x", 50, 10.2) == 0
    assert rates.update("x", 100, 10.5) == 200
    assert rates.update("x", 101, 10.6) == 200
