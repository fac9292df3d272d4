from __future__ import annotations

import pytest

from gateway.rocketmq.property_kinds import (
    DROP,
    IS_DELAY,
    IS_DISPATCH,
    IS_GROUP,
    IS_REQUEST,
    IS_SPACE_TOPIC,
    IS_TIMER,
    IS_TRAN,
    IS_UNIQ,
    PLAIN,
    kind_of,
)

KINDS = {
    b"UNIQ_KEY": IS_UNIQ,
    b"INNER_MULTI_DISPATCH": IS_DISPATCH,
    b"LMQ_TOPIC": IS_SPACE_TOPIC,
    b"DELAY": IS_DELAY,
    b"TIMER_DELAY_SEC": IS_TIMER,
    b"TIMER_DELIVER_MS": IS_TIMER,
    b"TRAN_MSG": IS_TRAN,
    b"PGROUP": IS_GROUP,
    b"REPLY_TO_CLIENT": IS_REQUEST,
    b"LMQ_TTL_MS": PLAIN,
} | dict.fromkeys(
    (
        b"WAIT",
        b"POP_CK",
        b"REAL_TOPIC",
        b"REAL_QID",
        b"__CRC32#",
        b"INNER_MULTI_QUEUE_OFFSET",
        b"LMQ_USER",
        b"LMQ_FOR",
    ),
    DROP,
)


@pytest.mark.parametrize("name", KINDS)
def test_a_name_means_what_it_means_and_one_like_it_is_plain(name):
    assert kind_of(b"xx" + name + b"yy", 2, 2 + len(name)) == KINDS[name]
    longer = kind_of(name + b"x", 0, len(name) + 1)
    assert longer == (IS_TIMER if name.startswith(b"TIMER") else DROP if name.startswith(b"LMQ_") else PLAIN)
    assert kind_of(name.lower(), 0, len(name)) == PLAIN
