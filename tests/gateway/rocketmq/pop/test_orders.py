from __future__ import annotations

from gateway.rocketmq.pop import orders as module
from gateway.rocketmq.pop.orders import Orders


class Taken:
    """A queue of which some offsets are hidden."""

    def __init__(self, *hidden: int, next_offset: int = 10) -> None:
        self.hidden = set(hidden)
        self.next_offset = next_offset

    @property
    def unacked_count(self) -> int:
        return len(self.hidden)

    @property
    def floor(self) -> int:
        return min(self.hidden, default=self.next_offset)

    def is_hidden(self, offset: int) -> bool:
        return offset in self.hidden


def test_what_was_taken_in_order_is_in_the_way_until_it_is_done_or_shown_again():
    orders, taken = Orders(), Taken()
    assert not orders.is_blocked(b"g", b"q", taken)
    taken.hidden |= {3, 4, 7}  # 7 without order
    orders.note_taken(b"g", b"q", [3, 4])
    assert orders.is_blocked(b"g", b"q", taken)
    assert not orders.is_blocked(b"h", b"q", Taken())
    taken.hidden -= {3, 4}
    assert not orders.is_blocked(b"g", b"q", taken)


def test_what_was_in_flight_before_the_first_look_is_in_the_way():
    orders, taken = Orders(), Taken(2, 5)
    assert orders.is_blocked(b"g", b"q", taken)
    taken.hidden = {12}
    assert not orders.is_blocked(b"g", b"q", taken)


def test_where_nothing_is_in_flight_any_more_all_is_known():
    orders, taken = Orders(), Taken(2)
    assert orders.is_blocked(b"g", b"q", taken)
    taken.hidden.clear()
    orders.open(b"g", b"q", taken)
    taken.hidden = {1}  # the group began anew, without order
    assert not orders.is_blocked(b"g", b"q", taken)


def test_what_is_known_is_bounded_and_what_is_forgotten_counts_as_in_order(monkeypatch):
    monkeypatch.setattr(module, "QUEUES_MAX", 2)
    orders, taken = Orders(), Taken()
    orders.open(b"g", b"q", taken)
    taken.hidden = {3}
    for number in range(4):
        orders.open(b"g", b"q%d" % number, Taken())
    assert orders.is_blocked(b"g", b"q", taken)
