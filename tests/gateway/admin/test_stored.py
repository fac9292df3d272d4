from __future__ import annotations

import base64

import pytest

from gateway.admin.stored import BODY_BYTES_MAX, tell_body


@pytest.mark.parametrize(
    ("body", "shown", "encoding", "is_cut"),
    [
        (b"", "", "string", False),
        ("21.5 °C".encode(), "21.5 °C", "string", False),
        (b"\xff\x00", base64.b64encode(b"\xff\x00").decode(), "base64", False),
        (b"x" * (BODY_BYTES_MAX + 1), "x" * BODY_BYTES_MAX, "string", True),
        (b"x" * (BODY_BYTES_MAX - 1) + "°".encode(), "x" * (BODY_BYTES_MAX - 1), "string", True),
    ],
)
def test_a_body_is_told_as_text_where_it_is_text(body, shown, encoding, is_cut):
    assert tell_body(body) == {"body": shown, "encoding": encoding, "body_bytes": len(body), "is_cut": is_cut}
