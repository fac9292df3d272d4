from __future__ import annotations

import json

from hypothesis import given, settings, strategies as st

from gateway.commands.doors.showing import Output, show
from gateway.commands.doors.traffic import Incoming

TEXTS = st.text('a/\n"\\\u00e9\u2028\ud800', max_size=8)


def test_forms_of_a_line():
    message = Incoming("a/b", b"hi", None, {"unit": b"C"}, {"qos": 1})
    assert show(message, Output.TEXT) == b"a/b hi\n"
    assert show(message, Output.BODY) == b"hi\n"
    assert show(message, Output.HEX) == b"a/b 6869\n"
    assert json.loads(show(message, Output.JSON)) == {
        "topic": "a/b", "body": "hi", "encoding": "string", "body_bytes": 2, "headers": {"unit": "C"},
        "properties": {"qos": 1},
    }  # fmt: skip


@settings(max_examples=50)
@given(TEXTS, st.binary(), st.dictionaries(TEXTS, TEXTS | st.binary() | st.integers() | st.none()))
def test_any_message_is_one_line_of_json(topic, body, headers):
    line = show(Incoming(topic, body, None, headers), Output.JSON)
    assert line.count(b"\n") == 1
    assert json.loads(line)["body_bytes"] == len(body)
