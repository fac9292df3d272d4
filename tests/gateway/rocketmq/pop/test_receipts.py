from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from gateway.rocketmq.errors import CommandRefusedError
from gateway.rocketmq.pop.receipts import Given, Receipt, describe, format_receipt, parse_receipt

NUMBERS = st.integers(min_value=0, max_value=2**62)


@given(NUMBERS, NUMBERS, NUMBERS, st.integers(0, 2**31 - 1), st.integers(0, 65_535), NUMBERS)
def test_a_receipt_says_until_when_its_message_is_hidden(first, pop_ms, invisible_ms, revive, queue_id, offset):
    receipt = Receipt(pop_ms, invisible_ms, revive)
    text = format_receipt(first, receipt, "lmq", queue_id, offset).decode()
    assert text.split(" ")[4:] == ["0", "lmq", str(queue_id), str(offset)]
    assert parse_receipt(text) == receipt
    assert parse_receipt(text).until_ms == pop_ms + invisible_ms


@pytest.mark.parametrize(
    "text",
    ["", " ", "1 2 3", "0 1 2 3 0", "0 a 2 3 0 lmq", "0 1 -2 3 0 lmq", "0 1 2 " + "9" * 21 + " 0 lmq", "0  2 3 0 lmq"],
)
def test_what_is_no_receipt_is_refused(text):
    with pytest.raises(CommandRefusedError) as refused:
        parse_receipt(text)
    assert refused.value.code == 1


@given(st.text(max_size=80))
def test_any_text_is_a_receipt_or_is_refused(text):
    try:
        receipt = parse_receipt(text)
    except CommandRefusedError:
        return
    assert receipt.until_ms >= 0


def test_an_answer_names_each_queue_once_with_its_first_offset_and_all():
    given_here = [Given(3, [120, 121, 125], {121: 2}), Given(0, [7], {})]
    assert describe(given_here, is_ordered=False) == {
        "startOffsetInfo": "0 3 120;0 0 7",
        "msgOffsetInfo": "0 3 120,121,125;0 0 7",
    }
    assert describe(given_here, is_ordered=True)["orderCountInfo"] == "0 qo3%121 2"
