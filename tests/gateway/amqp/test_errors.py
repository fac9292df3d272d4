from __future__ import annotations

import inspect

import pytest

from core import errors as core_errors
from gateway.amqp.errors import REPLY_CODE_BY_ERROR, AmqpError, error_from_core
from gateway.amqp.reply_codes import SOFT, ReplyCode


def test_every_error_of_the_core_has_an_answer():
    known = {value for _, value in inspect.getmembers(core_errors, inspect.isclass)}
    assert known == set(REPLY_CODE_BY_ERROR)


@pytest.mark.parametrize("code", ReplyCode)
def test_soft_errors_cost_a_channel_only(code):
    assert AmqpError(code, "x").is_fatal == (code not in SOFT)


def test_texts_fit_a_short_string():
    error = AmqpError(ReplyCode.NOT_FOUND, "ä" * 200)
    assert error.reply_text.startswith("NOT_FOUND - ä")
    assert len(error.reply_text.encode()) <= 255


def test_errors_of_the_core_keep_their_text():
    error = error_from_core(core_errors.DiskFullError("/data"), 0x3C0028)
    assert str(error) == "RESOURCE_ERROR - no space left for /data"
    assert error.method_index == 0x3C0028
