from __future__ import annotations

import pytest

from gateway.rocketmq.pop.again import attempts_of, find_places, has_property, write_again
from lmq.remoting.message_codec import decode_stored

RECEIPT = b"0 1790000000000 60000 0 0 lmq 0 0"


def stored(peer, **changes) -> bytes:
    assert peer.send(b"body", **changes).code == 0
    return bytes(peer.pull(changes.get("topic", "T")).body)


@pytest.mark.parametrize("properties", ["", "TAGS\x01a\x02KEYS\x01k\x02", "TAGS\x01a"])
@pytest.mark.parametrize("host", [b"\x7f\x00\x00\x01\x00\x00\x2a\x9f", bytes(15) + b"\x01\x00\x00\x2a\x9f"])
@pytest.mark.parametrize("topic", ["T", "%RETRY%" + "g" * 200])
def test_a_copy_has_more_attempts_and_a_receipt_and_is_else_the_same(site, properties, host, topic):
    record = stored(site.connect(host), properties=properties, topic=topic, j="2", l="16")
    before = decode_stored(record)
    after = decode_stored(write_again(record, 3, RECEIPT))
    assert (before.reconsume_times, after.reconsume_times) == (2, 5)
    assert attempts_of(record) == 2
    assert after.properties.pop(b"POP_CK") == RECEIPT
    before.properties.pop(b"__CRC32#", None)
    after.reconsume_times = 2
    assert after == before


def test_a_receipt_that_has_no_room_is_left_out(peer):
    record = stored(peer, properties=f"a\x01{'x' * 32_000}\x02")
    room = 32_767 - (len(record) - find_places(record).properties_at)
    long = write_again(record, 1, b"9" * (room + 50))
    assert decode_stored(long).reconsume_times == 1
    assert b"POP_CK" not in decode_stored(long).properties
    short = write_again(record, 1, b"9" * (room - 100))
    assert b"POP_CK" in decode_stored(short).properties


def test_properties_are_told_by_their_whole_names(peer):
    record = stored(peer, properties="AB\x01CD\x02EF\x01x\x02")
    assert [has_property(record, name) for name in (b"AB", b"EF", b"B", b"CD", b"body")] == [True, True, *[False] * 3]
