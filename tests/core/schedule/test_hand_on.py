from __future__ import annotations

import pytest

from core.errors import DiskFullError, MessageTooLargeError
from core.message import FLAG_MARK, FLAG_RETAIN, StoredBatch
from core.schedule.hand_on import Destination, HandOn
from tests.support.store import make_batch, open_store, read_queue


class Site:
    """A store with three messages on `W`, which are to go to `T`."""

    def __init__(self, folder):
        self.store = open_store(folder)
        waits = self.store.make_route(b"W", 0, b"", ())
        self.route = self.store.make_route(b"T", 0, b"", ())
        self.store.append_batch(make_batch([(waits, b"%d" % number) for number in range(3)]), 1)
        self.found = StoredBatch(8)
        self.store.read(waits.topic_ref, 0, self.found, 8, 1 << 20)
        self.retained = []
        self.refusals = []

    def publish_batch(self, batch, now_ms):
        if self.refusals:
            batch.appended, error = self.refusals.pop(0)
            raise error
        batch.ticket = self.store.append_batch(batch, now_ms)
        self.retained.append(batch.retained_count)

    def came(self):
        return [body for _, body in read_queue(self.store, b"T/0")]


@pytest.fixture
def site(tmp_path):
    site = Site(tmp_path)
    yield site
    site.found.clear()
    site.store.close()


def test_rows_go_where_they_are_told_in_the_order_given_and_those_of_nowhere_are_left_out(site):
    def place(found, i):
        return None if i == 1 else Destination(site.route, b"T", b"", 0)

    done, tickets = HandOn(site).publish(site.found, [2, 1, 0], place, 2)
    assert (done, len(tickets), site.came()) == (3, 1, [b"2", b"0"])


def test_a_producers_own_flag_retains_nothing(site):
    def place(found, i):
        return Destination(site.route, b"T", b"", (FLAG_MARK if i == 2 else 0) | FLAG_RETAIN)

    HandOn(site).publish(site.found, range(3), place, 2)
    assert site.retained == [0, 1]


def test_what_is_too_large_is_dropped_and_the_rest_goes_on(site):
    site.refusals = [(1, MessageTooLargeError("body", 2, 1))]
    hand_on = HandOn(site)
    done, _ = hand_on.publish(site.found, range(3), lambda found, i: Destination(site.route, b"T", b"", 0), 2)
    assert (done, hand_on.dropped, site.came()) == (3, 1, [b"2"])


def test_where_the_store_refuses_the_rest_is_left(site):
    site.refusals = [(1, DiskFullError("d"))]
    done, _ = HandOn(site).publish(site.found, range(3), lambda found, i: Destination(site.route, b"T", b"", 0), 2)
    assert done == 1
