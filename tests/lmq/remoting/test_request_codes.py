from __future__ import annotations

from lmq.remoting.request_codes import RequestCode


def test_codes_of_requests_fit_the_binary_header():
    assert all(0 < code < 1 << 15 for code in RequestCode)
