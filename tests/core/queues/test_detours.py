"""A message goes past full queues and to the level of its priority at once, and a batch is left as it was."""

from __future__ import annotations

import pytest

from core.queues.crossroads import Lead
from core.queues.detours import Detours
from core.queues.full_queues import Room
from tests.core.queues.test_levels import Levelled, led, make_batch, make_route, said


class Full:
    def find_room(self, wanted):
        return Room(0)

    def refuse(self, count):
        pass


class Broken:
    def use_level(self, level):
        raise RuntimeError("broken")


def test_what_goes_past_one_queue_finds_its_level_in_another():
    detours = Detours(make_route)
    detours.levels.add(1, Levelled())
    detours.full.add(2, Full())
    batch = make_batch(said(b"3"), b"")
    detours.divert(batch, 1_000)
    assert led(batch) == [[b"a3"], [b"a"]]
    detours.restore(batch)
    assert led(batch) == [[b"a", b"b"]] * 2
    assert len(batch.routes) == 2


def test_an_error_leaves_the_batch_as_it_was():
    detours = Detours(make_route)
    detours.levels.add(1, Broken())
    detours.full.add(2, Full())
    batch = make_batch(said(b"3"))
    with pytest.raises(RuntimeError):
        detours.divert(batch, 1_000)
    assert led(batch) == [[b"a", b"b"]]


class BreaksOff:
    """Leads the first message elsewhere, and has it wait; then it breaks."""

    def __init__(self):
        self.is_broken = False

    def lead(self, route_properties, properties, flag, born_ms):
        if self.is_broken:
            raise RuntimeError("broken")
        self.is_broken = True
        return Lead([b"a"], ["later"], lambda waits, now_ms: ["a route"])


def test_an_error_of_a_choice_leaves_the_batch_and_the_next_one_as_they_were():
    detours = Detours(make_route)
    detours.crossroads.add(1, BreaksOff())
    batch = make_batch(b"", b"")
    with pytest.raises(RuntimeError):
        detours.divert(batch, 1_000)
    assert (led(batch), len(batch.routes), batch.waits) == ([[b"a", b"b"]] * 2, 2, [])
    detours.crossroads.drop(1)
    later = make_batch(b"")
    later.routes = later.routes[::-1]
    later.route_index[0] = 1
    detours.divert(later, 1_000)
    detours.restore(later)
    assert later.route_index[0] == 1
