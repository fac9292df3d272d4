from __future__ import annotations

from gateway.net.descriptors import Capacity
from gateway.net.limits import ConnectionLimits
from gateway.net.watermarks import Watermarks


def _limits(marks, capacity=None):
    capacity = capacity or Capacity(1_000, call_later=lambda *_: None, is_left=lambda: True, watermarks=marks)
    return ConnectionLimits(capacity=capacity), capacity


def test_connections_of_all_doors_are_counted_together():
    marks = Watermarks(connections_max=2)
    mqtt, capacity = _limits(marks)
    amqp, _ = _limits(marks, capacity)
    assert [mqtt.refusal("a"), amqp.refusal("b")] == ["", ""]
    assert marks.is_full(capacity.count)
    assert mqtt.refusal("c") == amqp.refusal("c") == "limits_connections_max"
    amqp.release("b")
    assert mqtt.refusal("c") == ""
    marks.connections_max = 0
    assert amqp.refusal("d") == ""


def test_newcomers_are_refused_while_memory_is_low():
    marks = Watermarks()
    limits, capacity = _limits(marks)
    marks.is_memory_low = True
    assert limits.refusal("a") == "memory"
    assert (limits.count, capacity.count) == (0, 0)
    marks.is_memory_low = False
    assert limits.refusal("a") == ""
