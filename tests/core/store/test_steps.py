from __future__ import annotations

import pytest

from core.store.steps import advance


def test_work_goes_on_step_by_step_until_it_ends():
    done = []

    def count():
        for number in range(2):
            done.append(number)
            yield
        done.append("end")

    work = count()
    assert advance(work) is work
    assert done == [0]
    assert advance(work) is work
    assert done == [0, 1]
    assert advance(work) is None
    assert done == [0, 1, "end"]


def test_where_there_is_no_work_there_is_none_afterwards():
    assert advance(None) is None


def test_work_that_failed_has_ended():
    def fail():
        yield
        raise OSError("no room")

    work = fail()
    advance(work)
    with pytest.raises(OSError, match="no room"):
        advance(work)
    assert advance(work) is None
