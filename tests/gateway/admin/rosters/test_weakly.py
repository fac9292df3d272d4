from __future__ import annotations

import gc
import weakref

import pytest

from gateway.admin.rosters.weakly import weakly


class _Holder:
    def __init__(self):
        self.call = weakly(self.double)

    def double(self, number, *, more=0):
        return 2 * number + more


@pytest.fixture
def _no_collector():
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("_no_collector")
def test_a_call_does_as_the_method_and_holds_nothing():
    holder = _Holder()
    assert holder.call(2, more=1) == 5
    gone = weakref.ref(holder)
    del holder
    assert gone() is None
