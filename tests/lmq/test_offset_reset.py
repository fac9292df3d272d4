from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from lmq.offset_reset import read_offsets
from lmq.queues import MessageQueue

FIRST, SECOND = MessageQueue("T", "b", 0), MessageQueue("T", "b", 1)
WHERE = {"topic": "T", "brokerName": "b"}
AS_LIST = json.dumps({"offsetTable": [{**WHERE, "queueId": 0, "offset": 5}, {**WHERE, "queueId": 1, "offset": 7}]})


@pytest.mark.parametrize(
    "body",
    [
        b'{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"T"}:5,{"brokerName":"b","queueId":1,"topic":"T"}:7}}',
        AS_LIST.encode(),
    ],
)
def test_offsets_are_read_from_a_table_and_from_a_list(body):
    assert read_offsets(body) == {FIRST: 5, SECOND: 7}


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b'{"offsetTable":{}}', b'{"offsetTable":[{"topic":"T"}]}', b'{{"queueId":"x"}:5}', b"{\xff}:5"],
)
def test_what_names_no_queue_and_offset_is_left_out(body):
    assert read_offsets(body) == {}


@given(st.binary() | st.text('{}:,"[]5btqQIdopicNamerk').map(str.encode))
def test_any_bytes_are_read(body):
    assert isinstance(read_offsets(body), dict)
