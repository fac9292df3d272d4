from __future__ import annotations

import inspect

import pytest

from core import errors as core_errors
from gateway.amqp.errors import (
    REPLY_CODE_BY_ERROR,
    AmqpError,
    error_from_core,
    frame_error,
    undecodable,
    unexpected_frame,
)
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
    assert error.reply_text.endswith("ä...")
    assert 250 < len(error.reply_text.encode()) <= 255


@pytest.mark.parametrize(
    ("payload", "shown"),
    [
        (b"", "all octets = <<>>"),
        (b"\x00\x32", "all octets = <<0,50>>"),
        (b'say "\\"', 'all octets = <<"say \\"\\\\\\"">>'),
        (b"gr\xc3\xbc", "all octets = <<103,114,195,188>>"),
        (bytes(17), "first 16 octets = <<0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0>>"),
    ],
)
def test_frames_are_described_as_rabbitmq_does(payload, shown):
    assert frame_error(3, payload).reason == f"type 3, {shown}: unknown_frame"
    assert unexpected_frame(3, payload).reason == f"type 3, {shown}"


def test_arguments_that_cannot_be_read_are_shown_as_far_as_they_fit():
    assert undecodable(b"\x00\xff", 7).reason == "cannot decode <<0,255>>"
    text = undecodable(bytes(100_000), 7).reply_text
    assert text.endswith("...")
    assert len(text) == 255


def test_errors_of_the_core_keep_their_text():
    error = error_from_core(core_errors.DiskFullError("/data"), 0x3C0028)
    assert str(error) == "RESOURCE_ERROR - no space left for /data"
    assert error.method_index == 0x3C0028


def test_close_names_code_text_and_the_method_that_it_is_about():
    error = AmqpError(ReplyCode.NOT_FOUND, "no queue 'q'", 0x0032000A)
    assert error.close_arguments() == (404, "NOT_FOUND - no queue 'q'", 0x32, 0x0A)
