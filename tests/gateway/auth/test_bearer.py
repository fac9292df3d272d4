from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from gateway.auth.bearer import MESSAGE_BYTES_MAX, BearerError, read_bearer


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"n,,\x01auth=Bearer abc\x01\x01", ("", b"abc")),
        (b"n,a=ann,\x01host=h\x01port=1\x01auth=bearer  abc \x01\x01", ("ann", b"abc")),
        (b"y,a=a=2Cb=3D,\x01auth=Bearer a=b\x01\x01", ("a,b=", b"a=b")),
    ],
)
def test_token_and_wanted_name_are_read(data, found):
    assert read_bearer(data) == found


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"abc",
        b"n,,",
        b"n,,\x01auth=Bearer abc\x01",
        b"n,,\x01\x01\x01",
        b"p=tls-unique,,\x01auth=Bearer abc\x01\x01",
        b"n,ann,\x01auth=Bearer abc\x01\x01",
        b"n,a=\xff,\x01auth=Bearer abc\x01\x01",
        b"n\x01auth=Bearer abc\x01\x01",
        b"n,,x\x01auth=Bearer abc\x01\x01",
        b"n,,\x01auth=Basic abc\x01\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"n,,\x01auth\x01\x01",
        b"n,,\x01auth=Bearer " + b"x" * MESSAGE_BYTES_MAX + b"\x01\x01",
    ],
)
def test_other_messages_are_refused(data):
    with pytest.raises(BearerError):
        read_bearer(data)


@given(st.binary(max_size=80), st.booleans())
def test_any_bytes_are_read_or_refused(data, is_framed):
    try:
        read_bearer(b"n,,\x01auth=Bearer " + data + b"\x01\x01" if is_framed else data)
    except BearerError:
        return
