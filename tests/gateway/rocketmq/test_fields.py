from __future__ import annotations

import pytest

from gateway.rocketmq.errors import CommandRefusedError
from gateway.rocketmq.fields import check_group, flag_field, integer_field, text_field
from lmq.remoting.commands import Command


def request(**ext: str) -> Command:
    return Command(1, ext=ext)


def test_fields_are_read_by_their_type():
    said = request(topic="T", queueId="-3", big="9223372036854775807", plus="+1", on="TRUE", off="no")
    assert text_field(said, "topic") == "T"
    assert integer_field(said, "queueId") == -3
    assert integer_field(said, "big") == 2**63 - 1
    assert integer_field(said, "plus") == 1
    assert integer_field(said, "absent", 7) == 7
    assert flag_field(said, "on", otherwise=False)
    assert not flag_field(said, "off", otherwise=True)
    assert flag_field(said, "absent", otherwise=True)


@pytest.mark.parametrize(
    "text", ["", "x", "1.5", "-", "+-1", " 1", "1 ", "1_0", "\u0663", "9223372036854775808", "9" * 400]
)
def test_a_field_that_is_no_integer_is_refused_by_name(text):
    with pytest.raises(CommandRefusedError, match="queueId"):
        integer_field(request(queueId=text), "queueId")


def test_an_absent_required_field_is_refused_by_name():
    with pytest.raises(CommandRefusedError, match="topic"):
        text_field(request(), "topic")
    with pytest.raises(CommandRefusedError, match="queueId"):
        integer_field(request(), "queueId")


def test_a_name_that_no_group_can_have_is_refused():
    for name in ("g", "%RETRY%a|b-c_d", "x" * 255):
        check_group(name)
    for name in ("", "a b", "a.b", "a\0b", "\u00e4", "x" * 256):
        with pytest.raises(CommandRefusedError) as caught:
            check_group(name)
        assert caught.value.code == 26
