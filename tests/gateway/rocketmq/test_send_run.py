from __future__ import annotations

from gateway.rocketmq.send_run import BUFFER_BYTES_KEPT, ORIGIN_BYTES_MAX, SendRun
from tests.support.rocketmq import LOCALHOST


def begin(run: SendRun, origin: bytes = b"") -> None:
    run.begin(b"data", origin=origin, born_host=LOCALHOST, uniq_prefix=b"0" * 28)


def test_a_run_that_begins_has_forgotten_the_one_before():
    run = SendRun(10, 10)
    begin(run)
    run.count = 3
    run.targets.append(object()) if type(run.targets) is list else None
    run.by_key[b"", 0, b"", b"", 0] = 0
    begin(run)
    assert (run.count, len(run.targets), len(run.by_key), run.last_index) == (0, 0, 0, -1)
    assert bytes(run.batch.buf) == b"data"


def test_an_origin_without_bounds_is_left_out():
    run = SendRun(10, 10)
    begin(run, b"x" * (ORIGIN_BYTES_MAX + 1))
    assert bytes(run.origin) == b""


def test_buffers_that_huge_headers_made_are_let_go():
    run = SendRun(10, 10)
    run.extra = bytearray(BUFFER_BYTES_KEPT + 1)
    begin(run)
    assert len(run.extra) < BUFFER_BYTES_KEPT
