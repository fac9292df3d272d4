from __future__ import annotations

from pamqp import constants

from gateway.amqp.reply_codes import SOFT, ReplyCode


def test_codes_are_those_of_the_protocol():
    assert [int(code) for code in sorted(SOFT)] == [403, 404, 405, 406]
    assert ReplyCode.FRAME_ERROR == 501
    assert constants.REPLY_SUCCESS == ReplyCode.REPLY_SUCCESS
