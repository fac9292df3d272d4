from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from core.lmq.expiry import count_expired, expires_at, is_expired, read_ttl, take_expired
from core.message import FLAG_EXPIRES, FLAG_MARK
from core.properties import TTL_MS_MAX
from tests.support import amqp

EXPIRES = FLAG_MARK | FLAG_EXPIRES
COLUMNS = [
    "record_start",
    "record_end",
    "topic_start",
    "topic_end",
    "body_start",
    "body_end",
    "properties_start",
    "properties_end",
    "flag",
    "sys_flag",
    "attempt",
    "queue_offset",
    "physical_offset",
    "born_ms",
    "store_ms",
]


def batch(*ttls, store_ms=1_000):
    """Return messages with these times to live; None for none."""
    made = [({b"a": b"b"} if ttl is None else {b"a": b"b", b"LMQ_TTL_MS": b"%d" % ttl}, b"x") for ttl in ttls]
    stored = amqp.stored(made, flag=EXPIRES)
    for i, ttl in enumerate(ttls):
        stored.store_ms[i] = store_ms
        if ttl is None:
            stored.flag[i] = FLAG_MARK
    return stored


def test_a_message_expires_when_its_time_to_live_is_over():
    stored = batch(100, 0, None)
    assert [is_expired(stored, 0, now_ms, -1) for now_ms in (1_000, 1_099, 1_100)] == [False, False, True]
    assert [is_expired(stored, 1, now_ms, -1) for now_ms in (999, 1_000)] == [False, True]
    assert not is_expired(stored, 2, 1 << 62, -1)


@given(st.one_of(st.none(), st.integers(0, 50)), st.integers(-1, 50))
def test_the_moment_is_the_first_at_which_it_is_expired(ttl, limit_ms):
    stored = batch(ttl)
    moment = expires_at(stored, 0, limit_ms)
    if moment < 0:
        assert not is_expired(stored, 0, 1 << 62, limit_ms)
    else:
        assert [is_expired(stored, 0, now_ms, limit_ms) for now_ms in (moment - 1, moment)] == [False, True]


def test_flags_of_others_mean_nothing():
    stored = batch(0)
    stored.flag[0] = FLAG_EXPIRES
    assert not is_expired(stored, 0, 1 << 62, -1)


@pytest.mark.parametrize(
    ("properties", "ttl_ms"),
    [
        (b"", -1),
        (b"LMQ_TTL_MS\x015\x02", 5),
        (b"a\x01b\x02LMQ_TTL_MS\x0112", 12),
        (b"a\x01LMQ_TTL_MS\x02", -1),
        (b"LMQ_TTL_MS\x01\x02", -1),
        (b"LMQ_TTL_MS\x01-5\x02", -1),
        (b"LMQ_TTL_MS\x015s\x02", -1),
        (b"LMQ_TTL_MS2\x015\x02", -1),
        (b"LMQ_TTL_MS\x01" + b"9" * 300 + b"\x02", TTL_MS_MAX),
    ],
)
def test_forged_times_to_live_mean_nothing(properties, ttl_ms):
    buf = b"\x01" + properties + b"LMQ_TTL_MS\x017\x02"
    assert read_ttl(buf, 1, 1 + len(properties)) == ttl_ms


@given(
    st.lists(st.sampled_from([None, 10, 20]), max_size=12),
    st.sampled_from([-1, 15]),
    st.integers(0, 12),
    st.integers(1_009, 1_021),
)
def test_what_is_expired_is_taken_out_and_the_rest_stays_whole(ttls, limit_ms, fresh_from, now_ms):
    stored = batch(*ttls)
    whole = [[getattr(stored, name)[i] for name in COLUMNS] for i in range(len(ttls))]
    lives = [min(limit_ms if limit_ms >= 0 else 1_000, 1_000 if ttl is None else ttl) for ttl in ttls]
    gone = [i for i, life in enumerate(lives) if 1_000 + life <= now_ms]
    head = next((i for i in range(len(ttls)) if i not in gone), len(ttls))
    assert count_expired(stored, now_ms, limit_ms) == head
    assert take_expired(stored, now_ms, limit_ms, fresh_from) == [i for i in gone if i < fresh_from]
    left = [row for i, row in enumerate(whole) if i not in gone or i >= fresh_from]
    assert [[getattr(stored, name)[i] for name in COLUMNS] for i in range(stored.count)] == left
