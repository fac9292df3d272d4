"""What is told of the queues that a topic reaches."""

from __future__ import annotations

from core.lmq.explained import ExplainedQueue


def test_a_topic_reaches_queues_by_their_filters():
    queue = ExplainedQueue(b"%LMQ%q", {b"a/#": 2, b"a/+": 1}, readers=3, max_offset=7)
    assert sum(queue.filters.values()) == queue.readers
    assert queue.max_offset == 7
