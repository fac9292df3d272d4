from __future__ import annotations

from gateway.rocketmq.send_run import BUFFER_BYTES_KEPT, ORIGIN_BYTES_MAX, RunPool, SendRun, UniqCounter
from tests.support.rocketmq import LOCALHOST


def begin(run: SendRun, origin: bytes = b"") -> None:
    run.begin(b"data", origin=origin, born_host=LOCALHOST, uniq_prefix=b"0" * 28)


def test_a_run_that_begins_has_forgotten_the_one_before():
    run = SendRun(10, 10, UniqCounter())
    begin(run)
    run.count = 3
    run.targets.append(object()) if type(run.targets) is list else None
    run.by_key[b"", 0, b"", b"", 0] = 0
    begin(run)
    assert (run.count, len(run.targets), len(run.by_key), run.last_index) == (0, 0, 0, -1)
    assert bytes(run.batch.buf) == b"data"


def test_an_origin_without_bounds_is_left_out():
    run = SendRun(10, 10, UniqCounter())
    begin(run, b"x" * (ORIGIN_BYTES_MAX + 1))
    assert bytes(run.origin) == b""


def test_buffers_that_huge_headers_made_are_let_go():
    run = SendRun(10, 10, UniqCounter())
    run.extra = bytearray(BUFFER_BYTES_KEPT + 1)
    begin(run)
    assert len(run.extra) < BUFFER_BYTES_KEPT


def test_run_is_used_again_once_it_is_released():
    pool = RunPool(10, 10)
    shown = pool.show()
    run = pool.take()
    assert run is shown
    assert pool.take() is not run
    run.release()
    run.release()
    assert pool.take() is run
    assert pool.take() is not run


def test_other_limits_hold_for_the_next_run():
    pool = RunPool(10, 10)
    pool.show()
    pool.body_bytes_max = 7
    assert pool.take().body_bytes_max == 7


def test_a_run_that_is_held_is_used_again_when_all_have_let_go():
    pool = RunPool(10, 10)
    run = pool.take()
    run.hold()
    run.release()
    assert pool.show() is not run
    run.release()
    assert pool.show() is run
