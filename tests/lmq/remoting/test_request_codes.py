from __future__ import annotations

from lmq.remoting.request_codes import CUT, POP_CODES, RequestCode


def test_codes_of_requests_fit_the_binary_header_and_are_told_apart_where_it_cuts_them():
    cut = [code & CUT for code in RequestCode]
    assert all(0 < code < 1 << 15 for code in cut)
    assert len(set(cut)) == len(cut)
    assert {code for code in RequestCode if code != code & CUT} == set(POP_CODES)
