from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from lmq import SdkError
from lmq.message import Message
from lmq.receipts import Receipt, add_receipts, parse_receipt

SAID = {"popTime": "1000", "invisibleTime": "60000", "reviveQid": "5"}


def message(offset: int, queue_id: int = 3, topic: str = "T", queue: str = "T", **properties: str) -> Message:
    return Message(topic, b"", properties, queue, queue_id, offset, 0, 0, 0, b"", broker_name="b")


def test_a_receipt_is_made_of_what_the_answer_says_of_its_queue():
    said = SAID | {"startOffsetInfo": "0 3 120;1 0 7", "msgOffsetInfo": "0 3 121,125;1 0 8"}
    retried = message(8, 0, topic="%RETRY%g_T")
    first, second, third = add_receipts([message(121), message(125), retried], said)
    assert first.receipt == "120 1000 60000 5 0 b 3 121"
    assert second.receipt == "120 1000 60000 5 0 b 3 125"
    assert third.receipt == "7 1000 60000 5 1 b 0 8"


def test_a_message_brings_its_own_receipt():
    (found,) = add_receipts([message(1, POP_CK="9 8 7 6 0 b 5 4")], SAID)
    assert found.receipt == "9 8 7 6 0 b 5 4"


def test_a_light_queue_is_queue_0_whatever_its_records_say():
    said = SAID | {"startOffsetInfo": "0 0 2", "msgOffsetInfo": "0 0 2"}
    (found,) = add_receipts([message(2, 7, topic="LMQ_PARENT", queue="%LMQ%x")], said)
    assert found.receipt == "2 1000 60000 5 0 b 0 2"


def test_an_answer_without_offsets_begins_at_each_message():
    (found,) = add_receipts([message(4)], SAID)
    assert found.receipt == "4 1000 60000 5 0 b 3 4"


def test_in_order_the_answer_says_how_often_messages_were_given():
    said = SAID | {"msgOffsetInfo": "0 3 1,2", "orderCountInfo": "0 qo3%1 4;0 3 2"}
    assert [one.reconsume_times for one in add_receipts([message(1), message(2)], said)] == [4, 2]


@pytest.mark.parametrize(
    "said",
    [
        {},
        {**SAID, "popTime": "x"},
        {**SAID, "msgOffsetInfo": "0 3 9"},
        {**SAID, "msgOffsetInfo": "0 4 1"},
        {**SAID, "msgOffsetInfo": "0 3"},
        {**SAID, "startOffsetInfo": ";"},
        {**SAID, "orderCountInfo": "0 3"},
    ],
)
def test_an_answer_that_does_not_say_what_it_has_is_an_error(said):
    with pytest.raises(SdkError, match="cannot be read"):
        add_receipts([message(1)], said)


@given(
    st.dictionaries(st.sampled_from([*SAID, "startOffsetInfo", "msgOffsetInfo", "orderCountInfo"]), st.text("0 ,;q"))
)
def test_nothing_else_comes_of_what_a_broker_says(said):
    try:
        add_receipts([message(1)], said)
    except SdkError:
        return


@pytest.mark.parametrize(("flag", "topic"), [("0", "T"), ("1", "%RETRY%g_T"), ("2", "%RETRY%g+T")])
def test_a_receipt_is_of_a_topic(flag, topic):
    receipt = Receipt(1, 2, 3, 4, flag, "b", 5, 6)
    assert parse_receipt(receipt.text) == receipt
    assert receipt.topic("T", "g") == topic


@pytest.mark.parametrize("text", ["", "x", "1 2 3 4 0 b 5", "1 2 3 4 0 b five 6", "a 2 3 4 0 b 5 6"])
def test_what_is_no_receipt_is_an_error(text):
    with pytest.raises(SdkError, match="not a receipt"):
        parse_receipt(text)
