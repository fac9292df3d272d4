from __future__ import annotations

import pytest

from gateway.amqp.errors import AmqpError
from gateway.amqp.field_table import Field
from gateway.amqp.stream_offset import Start, parse_start

NOW_MS = 1_800_000_000_000


@pytest.mark.parametrize(
    ("said", "start"),
    [
        (Field("longstr", b"first"), Start(word="first")),
        (Field("longstr", b"last"), Start(word="last")),
        (Field("longstr", b"next"), Start(word="next")),
        (Field("byte", 0), Start(offset=0)),
        (Field("long", 1 << 40), Start(offset=1 << 40)),
        (Field("timestamp", 1_700_000_000), Start(at_ms=1_700_000_000_000)),
        (Field("longstr", b"90s"), Start(at_ms=NOW_MS - 90_000)),
        (Field("longstr", b"5m"), Start(at_ms=NOW_MS - 300_000)),
        (Field("longstr", b"1h"), Start(at_ms=NOW_MS - 3_600_000)),
        (Field("longstr", b"7D"), Start(at_ms=NOW_MS - 7 * 86_400_000)),
        (Field("longstr", b"2M"), Start(at_ms=NOW_MS - 60 * 86_400_000)),
        (Field("longstr", b"999Y"), Start(at_ms=0)),
    ],
)
def test_a_start_is_a_word_an_offset_or_a_moment(said, start):
    assert parse_start(said, NOW_MS, "queue 'q'") == start


@pytest.mark.parametrize(
    "said",
    [Field("longstr", b"second"), Field("longstr", b"1w"), Field("longstr", b""), Field("long", -1),
     Field("bool", value=True), Field("double", 1.0), Field("longstr", b"1h\n"), Field("longstr", "\u0661h".encode())],
)  # fmt: skip
def test_anything_else_is_refused(said):
    with pytest.raises(AmqpError, match="PRECONDITION_FAILED - invalid arg 'x-stream-offset' for queue 'q': "):
        parse_start(said, NOW_MS, "queue 'q'")
