from __future__ import annotations

import pytest

from gateway.mqtt.events import RunPool, make_ack_run, make_publish_run


@pytest.mark.parametrize("make", [make_publish_run, make_ack_run])
def test_columns_are_used_again_once_their_run_is_released(make):
    pool = RunPool(2)
    shown = pool.show()
    run = make(pool)
    assert run.columns is shown
    columns = run.columns
    assert pool.take() is not columns
    run.release()
    assert pool.take() is columns


def test_run_that_is_released_twice_gives_its_columns_back_once():
    pool = RunPool(2)
    run = make_publish_run(pool)
    run.release()
    run.release()
    assert pool.take() is not pool.take()


def test_columns_of_one_run_wait_for_the_next():
    pool = RunPool(2)
    first, second = pool.take(), pool.take()
    pool.give_back(first)
    pool.give_back(second)
    assert pool.take() is second
    assert pool.take() not in {first, second}
