from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from gateway.rocketmq.admin.queue_tables import cut_table, encode_queue, encode_table, topic_of


def test_tables_have_objects_for_keys_as_the_tools_read_them():
    rows = [(encode_queue("b", "T", 1), {"minOffset": 0}), (encode_queue("b", 'q"', 2), 5)]
    table = encode_table("offsetTable", rows, {"consumeTps": 0.0})
    assert table == (
        b'{"offsetTable":{{"brokerName":"b","queueId":1,"topic":"T"}:{"minOffset":0},'
        b'{"brokerName":"b","queueId":2,"topic":"q\\""}:5},"consumeTps":0.0}'
    )
    assert encode_table("t", [], {}) == b'{"t":{}}'


@pytest.mark.parametrize(
    ("body", "table"),
    [
        (b'{"a":{},"messageQueueTable":{{"topic":"T}","q":"\\""}:5},"b":1}', b'{{"topic":"T}","q":"\\""}:5}'),
        (b'{"messageQueueTable":{}}', b"{}"),
        (b'{"messageQueueTable":{{', b"{}"),
        (b"", b"{}"),
    ],
)
def test_a_table_is_cut_out_as_text(body, table):
    assert cut_table(body, "messageQueueTable") == table


@given(st.binary(max_size=80))
def test_any_bytes_have_a_table_or_none(tail):
    cut = cut_table(b'{"t":{' + tail, "t")
    assert cut == b"{}" or (cut.startswith(b"{") and cut.endswith(b"}"))


def test_keys_of_the_store_name_topic_and_queue():
    assert topic_of(b"T/3") == (b"T", 3)
    assert topic_of(b"%LMQ%a") == (b"%LMQ%a", 0)
    assert topic_of(b"odd") == (b"", 0)
