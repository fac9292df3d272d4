"""Hold the Spark report against what the devices sent: the report is the log's own count, by another way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from core.lmq.queue_name import amqp_queue_name, mqtt_queue_name
from gateway.demo.ledger import Ledger
from gateway.demo.plan import Consumer, light_queues

_VHOST = b"/"


def check_report(report: Mapping[str, Any], ledger: Ledger) -> list[str]:
    """Return each number of the report that is not what was sent, as a line of text."""
    consumers = [own.consumer for own in ledger.arrivals.values()]
    by_queue = count_by_queue(ledger, consumers)
    totals = report["totals"]
    expected = {
        "messages": len(ledger.sent),
        "dispatches": sum(by_queue.values()),
        "devices": len({device for device, _ in ledger.sent}),
        "topics": len({topic for topic, _ in ledger.sent.values()}),
        "queues": len(by_queue),
    }
    faults = [
        f"the report counts {totals[name]} {name}, not {count}"
        for name, count in expected.items()
        if totals[name] != count
    ]
    told = {row["queue"]: row["messages"] for row in report["top_queues"]}
    faults += [
        f"the report counts {told.get(name, 0)} messages in {name}, not {count}"
        for name, count in by_queue.most_common(len(told))
        if told.get(name) != count
    ]
    return faults


def count_by_queue(ledger: Ledger, consumers: Sequence[Consumer]) -> Counter[str]:
    """Return how many messages each light queue must hold, by the queue's name in the log."""
    by_topic = Counter(topic for topic, _ in ledger.sent.values())
    by_queue: Counter[str] = Counter()
    for topic, count in by_topic.items():
        for kind, name in light_queues(consumers, topic):
            by_queue[_name_in_log(kind, name)] += count
    return by_queue


def _name_in_log(kind: str, name: str) -> str:
    if kind == "amqp":
        return amqp_queue_name(_VHOST, name.encode()).decode()
    return mqtt_queue_name(name.encode()).decode()
