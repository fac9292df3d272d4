"""A damaged dispatch set is restored where a checksum, or two counts that agree, prove what it held."""

from __future__ import annotations

import random
from array import array

import pytest

from core.settings import StoreSettings
from core.store.set_copies import find_copies
from core.store.set_rescue import SetRescue
from tests.support.store import light, open_store, publish

NAMES = light(*"abcdefgh")
OFFSETS = array("q", [1] + [0] * 7)


class Stood:
    """Says where the queues stood, and knows no other segment."""

    def __init__(self, offsets):
        self.offsets = offsets

    def others(self):
        return []

    later = others

    def stood(self, _names):
        return self.offsets


@pytest.fixture(scope="module", params=["127.0.0.1", "::1"])
def log(request, tmp_path_factory):
    """Return a segment, and where its first set begins and ends."""
    folder = tmp_path_factory.mktemp("store")
    place = StoreSettings(segment_bytes=64 * 1024, inline_dispatch_bytes=60, store_host=request.param)
    store = open_store(folder, place)
    many = store.make_route(b"T", 0, b"", NAMES)
    publish(store, store.make_route(b"T", 0, b"", light("a", "z")), b"0")
    publish(store, many, b"1", b"2", b"3")
    many.dispatch.written_at = -1
    publish(store, many, b"5")
    store.close()
    data = (folder / "commitlog" / ("0" * 20)).read_bytes()
    at = find_copies(data, 0)[0].place
    return data, at, at + int.from_bytes(data[at : at + 4], "big")


def damaged(log, start, end):
    data, at, _ = log
    made = bytearray(data)
    made[at + start : at + end] = bytes(end - start)
    return bytes(made)


def test_any_flipped_bit_is_put_right(log):
    data, at, end = log
    for place in range(8 * at, 8 * end, 7):
        made = bytearray(data)
        made[place // 8] ^= 1 << place % 8
        restored = SetRescue(bytes(made), 0, None).restore(at, end)
        assert restored == (NAMES, OFFSETS, end - at)


def test_names_come_from_another_copy_and_offsets_from_what_is_left(log):
    _, at, end = log
    head = find_copies(log[0], 0)[0].head
    made = damaged(log, len(head) + 2, len(head) + 40)
    assert SetRescue(made, 0, None).restore(at, end) == (NAMES, OFFSETS, end - at)


def test_offsets_are_those_that_are_known_or_counted(log):
    _, at, end = log
    made = damaged(log, end - at - 60, end - at - 40)  # the offsets, and the last names
    assert SetRescue(made, 0, Stood(OFFSETS)).restore(at, end) == (NAMES, OFFSETS, end - at)
    assert SetRescue(made, 0, None).restore(at, end) == (NAMES, OFFSETS, end - at)


def test_without_a_checksum_both_counts_must_agree(log):
    _, at, end = log
    made = damaged(log, 0, end - at)
    assert SetRescue(made, 0, Stood(OFFSETS)).restore(at, end) == (NAMES, OFFSETS, end - at)
    assert SetRescue(made, 0, Stood(array("q", [2] + [0] * 7))).restore(at, end) is None
    assert SetRescue(made, 0, Stood(None)).restore(at, end) is None


def test_what_no_message_names_is_no_set(log):
    data, at, end = log
    made = damaged(log, 0, end - at).replace(b"LMQ_SET\x01%d\x02" % at, b"LMQ_SET\x01%d\x02" % (at + 1))
    assert SetRescue(made, 0, Stood(OFFSETS)).restore(at, end) is None
    assert data != made


@pytest.mark.parametrize("seed", range(60))
def test_whatever_is_damaged_what_is_restored_is_right(log, seed):
    chance = random.Random(seed)
    data, at, end = log
    start = chance.randrange(end - at)
    stop = chance.randint(start, end - at)
    made = bytearray(data)
    made[at + start : at + stop] = chance.randbytes(stop - start)
    restored = SetRescue(bytes(made), 0, Stood(chance.choice([None, OFFSETS]))).restore(at, end)
    assert restored is None or restored == (NAMES, OFFSETS, end - at)
