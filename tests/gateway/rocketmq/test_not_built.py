from __future__ import annotations

from gateway.rocketmq.not_built import NOT_BUILT
from lmq.remoting.request_codes import RequestCode


def test_no_request_is_both_answered_and_not_built():
    assert not NOT_BUILT.keys() & {int(code) for code in RequestCode}


def test_pops_codes_are_known_in_full_and_as_a_binary_header_cuts_them():
    names = {NOT_BUILT.get(code) for code in (200_052, 200_052 & 0xFFFF, 200_056, 200_056 & 0xFFFF)}
    assert names == {"peeking at what a POP would give, and rolling one back"}
