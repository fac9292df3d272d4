from __future__ import annotations

import pytest

from core.message import StoredBatch
from gateway.amqp.field_table import Field
from gateway.amqp.stream_filter import StreamFilter, find_value, parse_filter

VALUE = b"x-stream-filter-value\x01a\x02"


@pytest.mark.parametrize(
    ("properties", "value"),
    [
        (b"", None),
        (VALUE, b"a"),
        (b"b\x01c\x02" + VALUE + b"d\x01e\x02", b"a"),
        (b"no-" + VALUE, None),
        (b"b\x01no-" + VALUE + VALUE.replace(b"a\x02", b"\x02"), b""),
    ],
)
def test_a_value_is_a_property_of_its_name_alone(properties, value):
    assert find_value(properties) == value


def test_what_is_not_wanted_is_left_out_and_the_rest_moves_together():
    stored = StoredBatch(8)
    stored.buf = VALUE + b"b\x01c\x02" + VALUE
    for i, (start, end) in enumerate(
        ((0, len(VALUE)), (len(VALUE), len(VALUE) + 4), (len(VALUE) + 4, 2 * len(VALUE) + 4))
    ):
        stored.properties_start[i], stored.properties_end[i], stored.queue_offset[i] = start, end, 10 + i
        stored.count = i + 1
    StreamFilter(frozenset((b"a",)), matches_unfiltered=False).apply(stored)
    assert list(stored.queue_offset[: stored.count]) == [10, 12]
    StreamFilter(frozenset(), matches_unfiltered=True).apply(stored)
    assert stored.count == 0


def test_a_table_of_arguments_without_a_filter_wants_all():
    assert parse_filter({}, "queue") is None
    assert parse_filter({"x-stream-match-unfiltered": Field("bool", value=True)}, "queue") is None
