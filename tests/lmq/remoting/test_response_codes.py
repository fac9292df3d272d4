from __future__ import annotations

from lmq.remoting.response_codes import SEND_STORED_CODES, ResponseCode


def test_a_stored_message_is_told_by_four_codes():
    assert {0, 10, 11, 12} == SEND_STORED_CODES
    assert ResponseCode.PULL_OFFSET_MOVED == 21
