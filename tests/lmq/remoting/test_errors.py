from __future__ import annotations

from lmq.remoting.errors import FrameError, RecordError


def test_an_error_says_what_is_wrong_and_where():
    assert str(FrameError("no header", 17)) == "malformed frame at 17: no header"
    error = RecordError("impossible size", 5)
    assert (error.reason, error.position, str(error)) == (
        "impossible size",
        5,
        "malformed record at 5: impossible size",
    )
