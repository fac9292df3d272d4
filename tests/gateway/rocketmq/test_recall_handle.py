from __future__ import annotations

import base64
from array import array

import pytest

from gateway.rocketmq.answer_codec import encode_send_answers
from gateway.rocketmq.recall_handle import Handles
from lmq.remoting.commands import HEADER_BINARY, HEADER_JSON
from tests.gateway.rocketmq.test_answer_codec import HOST_HEX, decoded, stored
from tests.support.rocketmq import send_frame


@pytest.mark.parametrize("header_type", [HEADER_JSON, HEADER_BINARY])
@pytest.mark.parametrize("key", ["", "U", "UV", "UVW", "\u00fc" * 40, "x" * 2_000])
def test_answers_to_sends_that_wait_say_what_takes_them_back_and_others_do_not(header_type, key):
    said = f"UNIQ_KEY\x01{key}\x02"
    run = stored(b"".join(send_frame(opaque=i, properties=said, header_type=header_type) for i in range(3)))
    handles = Handles(b"gate", array("q", [1_790_000_000_000, 0, 7]))
    answers = decoded(encode_send_answers(run, HOST_HEX, 0, 3, handles))
    plain = decoded(encode_send_answers(run, HOST_HEX, 0, 3))
    for answer, before, due_ms in zip(answers, plain, handles.dues, strict=True):
        handle = answer.ext.pop("recallHandle", None)
        assert answer.ext == before.ext
        told = f"v1 T gate {due_ms} {before.ext['transactionId']}"
        assert handle == (base64.urlsafe_b64encode(told.encode()).decode() if due_ms else None)
        assert (len(handle) if handle else 0) == handles.measure(run, answer.opaque)
