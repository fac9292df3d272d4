"""Metrics of queues: AMQP's all together, the deepest by name; those of any door that are asked for; groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from gateway.admin.totals import Totals, depth_of
from gateway.inventory import QueueEntry

LABELS = ("vhost", "queue")
LIGHT_LABELS = ("door", "queue")
GROUP_LABELS = ("door", "group", "queue")


def total_families(totals: Totals, now_s: float) -> Iterator[Metric]:
    """Yield what there is of all doors together; ages are those of the moment `now_s`, since 1970."""
    for name, text, value in (
        ("lmq_queues", "AMQP queues.", totals.queues),
        ("lmq_queue_messages_ready", "Messages in AMQP queues that could be taken now.", totals.ready),
        ("lmq_queue_messages_unacknowledged", "Messages that consumers have.", totals.unacked),
        ("lmq_consumers", "Consumers of AMQP queues.", totals.readers),
        ("lmq_channels", "Open channels of AMQP connections.", totals.channels),
        ("lmq_inflight", "Messages that MQTT sessions were sent and did not acknowledge.", totals.inflight),
        ("lmq_subscriptions", "Subscriptions of MQTT sessions, connected or not.", totals.subscriptions),
    ):
        yield GaugeMetricFamily(name, text, value)
    deepest = GaugeMetricFamily("lmq_deepest_queue_messages", "Messages of the deepest AMQP queues.", labels=LABELS)
    for entry in totals.deepest:
        deepest.add_metric([entry.vhost, entry.name], depth_of(entry))
    yield deepest
    oldest = GaugeMetricFamily(
        "lmq_oldest_queue_message_age_seconds", "Age of the first message in the oldest AMQP queues.", labels=LABELS
    )
    for entry, stored_ms in totals.oldest:
        oldest.add_metric([entry.vhost, entry.name], max(now_s - stored_ms / 1000, 0))
    yield oldest
    again, given = (
        CounterMetricFamily(f"lmq_redelivering_queue_{name}", text, labels=LABELS)
        for name, text in (
            ("redelivered", "Messages given once more, of the AMQP queues of which that are most now."),
            ("messages", "Messages that ever came into these queues."),
        )
    )
    for entry in totals.repeating:
        again.add_metric([entry.vhost, entry.name], entry.again)
        given.add_metric([entry.vhost, entry.name], entry.came)
    yield again
    yield given
    yield from _group_families(totals)
    yield from _behind_families(totals)


def _group_families(totals: Totals) -> Iterator[Metric]:
    again, came = (
        CounterMetricFamily(f"lmq_redelivering_group_{name}", text, labels=GROUP_LABELS)
        for name, text in (
            ("redelivered", "Messages given once more, of the $share and RocketMQ groups of which that are most now."),
            ("messages", "Messages that ever came into their queues."),
        )
    )
    for entry in totals.repeating_groups:
        again.add_metric([entry.door, entry.group, entry.topic], entry.redelivered)
        came.add_metric([entry.door, entry.group, entry.topic], entry.came)
    yield again
    yield came


def _behind_families(totals: Totals) -> Iterator[Metric]:
    sessions = GaugeMetricFamily(
        "lmq_deepest_session_messages", "Messages that wait for the sessions that most wait for.", labels=["client"]
    )
    for client, count in totals.sessions_behind:
        sessions.add_metric([client], count)
    yield sessions
    groups = GaugeMetricFamily(
        "lmq_lagging_group_messages",
        "Lag of the RocketMQ and $share groups that are furthest behind, of all their queues together.",
        labels=GROUP_LABELS[:2],
    )
    for (door, group), lag in totals.groups_behind:
        groups.add_metric([door, group], lag)
    yield groups


class LightEntry(NamedTuple):
    """A light queue that is no AMQP queue: its door counts neither what is ready nor what readers have."""

    door: str
    name: str  # as the door's clients call it
    kept: int  # messages
    readers: int
    came: int  # messages that ever came


class QueuesCollector(Collector):
    """Metrics of some queues.

    Args:
        entries: The queues of AMQP.
        light: Those of other doors.
    """

    def __init__(self, entries: Iterable[QueueEntry], light: Iterable[LightEntry] = ()) -> None:
        self._entries = list(entries)
        self._light = list(light)

    def describe(self) -> Iterable[Metric]:
        """Return nothing: names are fixed."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield each metric with a sample for each queue."""
        for name, text in (
            ("ready", "Messages that could be taken now."),
            ("unacked", "Messages that consumers have."),
            ("readers", "Consumers."),
        ):
            gauge = GaugeMetricFamily(f"lmq_detailed_queue_{name}", text, labels=LABELS)
            for entry in self._entries:
                gauge.add_metric([entry.vhost, entry.name], getattr(entry, name) or 0)
            yield gauge
        given = CounterMetricFamily("lmq_detailed_queue_messages", "Messages that ever came into it.", labels=LABELS)
        for entry in self._entries:
            given.add_metric([entry.vhost, entry.name], entry.came)
        yield given
        again = CounterMetricFamily("lmq_detailed_queue_redelivered", "Messages given once more.", labels=LABELS)
        for entry in self._entries:
            again.add_metric([entry.vhost, entry.name], entry.again)
        yield again
        yield from self._light_families()

    def _light_families(self) -> Iterator[Metric]:
        for name, text in (("kept", "Messages that the log keeps, done or not."), ("readers", "Readers that wait.")):
            gauge = GaugeMetricFamily(f"lmq_detailed_light_queue_{name}", text, labels=LIGHT_LABELS)
            for entry in self._light:
                gauge.add_metric([entry.door, entry.name], getattr(entry, name))
            yield gauge
        text = "Messages that ever came into it."
        came = CounterMetricFamily("lmq_detailed_light_queue_messages", text, labels=LIGHT_LABELS)
        for entry in self._light:
            came.add_metric([entry.door, entry.name], entry.came)
        yield came
