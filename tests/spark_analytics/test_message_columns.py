from __future__ import annotations

import pytest

pytest.importorskip("pyarrow")

from core.message import StoredBatch
from spark_analytics.message_columns import MessageColumns
from spark_analytics.options import ReadOptions
from spark_analytics.schema import columns_of


def batch_of(*rows, sys_flags=None):
    """Lay out rows of (properties, body) end to end, as a scan of a segment would."""
    batch = StoredBatch(max(len(rows), 1))
    buf = bytearray(b"head")
    for place, (properties, body) in enumerate(rows):
        batch.record_start[place] = len(buf)
        batch.body_start[place] = len(buf)
        buf += body
        batch.body_end[place] = len(buf)
        batch.topic_start[place], batch.topic_end[place] = 0, 4
        batch.properties_start[place] = len(buf)
        buf += properties
        batch.properties_end[place] = batch.record_end[place] = len(buf)
        batch.sys_flag[place] = (sys_flags or {}).get(place, 0)
        batch.physical_offset[place] = 1000 + batch.record_start[place]
    batch.buf = bytes(buf)
    batch.count = len(rows)
    return batch


def read(batch, *names, rows=None, names_of=None):
    columns = MessageColumns(batch, 1000, names_of or (lambda _: []), rows or range(batch.count))
    return columns.to_batch(columns_of(ReadOptions("x", columns=names))).to_pydict()


def dispatch(names, offsets="0"):
    return f"INNER_MULTI_DISPATCH\x01{names}\x02INNER_MULTI_QUEUE_OFFSET\x01{offsets}\x02".encode()


def test_a_list_of_queues_without_offsets_went_nowhere():
    batch = batch_of((dispatch("a,b", "0,0"), b""), (b"INNER_MULTI_DISPATCH\x01a,b\x02", b""), (b"", b""))
    assert read(batch, "fanout", "queues") == {"fanout": [2, 0, 0], "queues": [["a", "b"], None, None]}


def test_a_transaction_that_is_not_committed_went_nowhere():
    batch = batch_of(*[(dispatch("a"), b"")] * 4, sys_flags={1: 0x4, 2: 0x8, 3: 0xC})
    assert read(batch, "fanout") == {"fanout": [1, 0, 1, 0]}


def test_names_of_an_interned_set_are_asked_for_once_where_they_are_counted():
    asked = []

    def names_of(row):
        asked.append(row)
        return [b"x", b"y", b"z"]

    batch = batch_of((b"LMQ_SET\x0177\x02", b""), (dispatch("a"), b""), (b"LMQ_SET\x0177\x02", b""))
    assert read(batch, "fanout", names_of=names_of) == {"fanout": [3, 1, 3]}
    assert asked == [0]
    assert read(batch, "queues", names_of=names_of) == {"queues": [["x", "y", "z"], ["a"], ["x", "y", "z"]]}


def test_what_the_dispatch_takes_is_counted_with_its_separators():
    encoded = dispatch("a,b", "10,7")
    batch = batch_of((encoded + b"LMQ_CLIENT\x01d\x02", b""), (b"LMQ_SET\x01123\x02", b""))
    assert read(batch, "dispatch_bytes") == {"dispatch_bytes": [len(encoded), len(b"LMQ_SET\x01123\x02")]}


def test_a_record_without_a_protocol_came_from_rocketmq():
    batch = batch_of((b"LMQ_PROTOCOL\x01mqtt\x02LMQ_USER\x01ann\x02", b""), (b"TAGS\x01a\x02", b""))
    assert read(batch, "protocol", "user", "device") == {
        "protocol": ["mqtt", "rocketmq"],
        "user": ["ann", None],
        "device": [None, None],
    }


def test_some_rows_of_a_batch_can_be_read():
    batch = batch_of((b"", b"zero"), (b"", b"one"), (b"", b""), (b"", b"three"))
    assert read(batch, "body", "segment", rows=range(1, 4)) == {"body": [b"one", b"", b"three"], "segment": [1000] * 3}
    whole = MessageColumns(batch, 1000, lambda _: [], range(4))
    assert whole.slice(2, 4).to_batch(columns_of(ReadOptions("x", columns=("body",)))).to_pydict() == {
        "body": [b"", b"three"]
    }


def test_columns_do_not_change_when_the_batch_is_read_into_again():
    batch = batch_of((b"LMQ_CLIENT\x01d\x02", b"body"))
    columns = MessageColumns(batch, 0, lambda _: [], range(1))
    made = columns.to_batch(columns_of(ReadOptions("x", columns=("phys", "device", "body_bytes"))))
    before = made.to_pydict()
    batch.physical_offset[0] = batch.body_end[0] = 7
    batch.clear()
    assert made.to_pydict() == before
