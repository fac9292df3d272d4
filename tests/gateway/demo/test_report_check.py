from __future__ import annotations

import copy

import pytest

from gateway.demo.ledger import Ledger
from gateway.demo.plan import Consumer
from gateway.demo.report_check import check_report

CONSUMERS = [Consumer("one", "mqtt", ("a/#",)), Consumer("two", "amqp", ("a.x",), queue="q")]
GOOD = {
    "totals": {"messages": 3, "dispatches": 3, "devices": 2, "topics": 3, "queues": 2},
    "top_queues": [{"queue": "%LMQ%mqtt%a%|h", "messages": 2}, {"queue": "%LMQ%amqp%|2f%q", "messages": 1}],
}


@pytest.fixture
def ledger():
    made = Ledger(CONSUMERS)
    for key, topic in (((1, 0), "a/x"), ((1, 1), "a/y"), ((2, 0), "b")):
        made.add_sent(key, topic, b"body")
    return made


def test_a_report_of_what_was_sent_has_no_faults(ledger):
    assert check_report(GOOD, ledger) == []


@pytest.mark.parametrize("name", list(GOOD["totals"]))
def test_each_total_is_held_against_what_was_sent(ledger, name):
    report = copy.deepcopy(GOOD)
    report["totals"][name] += 1
    (fault,) = check_report(report, ledger)
    assert name in fault


def test_a_queue_with_another_count_is_named(ledger):
    report = copy.deepcopy(GOOD)
    report["top_queues"][1]["messages"] = 7
    assert check_report(report, ledger) == ["the report counts 7 messages in %LMQ%amqp%|2f%q, not 1"]
