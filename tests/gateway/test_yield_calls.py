from __future__ import annotations

from gateway import yield_calls
from gateway.giving_way import GivingWay


def test_both_forms_come_back_from_giving_up_the_core():
    yield_calls.give_up_core()
    GivingWay().give_way()
