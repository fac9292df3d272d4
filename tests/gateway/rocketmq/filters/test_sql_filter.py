from __future__ import annotations

import pytest

from core.properties import encode_properties
from gateway.rocketmq.filters.sql_filter import COST_MAX, SqlFilter, read_filter
from gateway.rocketmq.filters.sql_tokens import SqlError


def test_a_filter_reads_encoded_properties():
    wanted = SqlFilter("TAGS = 'Größe' AND n BETWEEN 1 AND 3")
    assert wanted.wants(encode_properties([(b"TAGS", "Größe".encode()), (b"n", b"2")]))
    assert not wanted.wants(b"TAGS\x01Gr\xff\x02n\x012\x02")
    assert not wanted.wants(b"")
    assert not wanted.wants(b"\x02\x01\x02n")


def test_a_filter_is_read_once_and_a_wrong_one_too():
    assert read_filter("a = 1") is read_filter("a = 1")
    for _ in range(2):
        with pytest.raises(SqlError) as caught:
            read_filter("a =")
        assert caught.value.reason == "unexpected the end at column 4"


def test_a_dear_filter_looks_at_fewer_messages_in_one_go():
    cheap, dear = SqlFilter("a = 1"), SqlFilter(" OR ".join(["a CONTAINS 'x'"] * 180))
    assert cheap.messages_max > 1_000
    assert 1 <= dear.messages_max <= COST_MAX // (180 * 16)
