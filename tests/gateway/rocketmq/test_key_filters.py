from __future__ import annotations

from hypothesis import given, strategies as st

from gateway.rocketmq.key_filters import hash_key, make_filter, may_have

KEYS = st.lists(st.binary(max_size=40), max_size=300)


@given(KEYS)
def test_a_filter_has_all_its_keys(keys):
    bits = make_filter([hash_key(key) for key in keys])
    assert all(may_have(bits, hash_key(key)) for key in keys)


def test_few_others_seem_to_be_there():
    bits = make_filter([hash_key(b"order-%d" % number) for number in range(1_024)])
    assert len(bits) < 1_400
    assert sum(may_have(bits, hash_key(b"other-%d" % number)) for number in range(10_000)) < 300


def test_where_no_message_had_a_key_none_may_be_there():
    assert make_filter([]) == b""
    assert not may_have(b"", hash_key(b"key"))
