"""Masks of WebSocket, in the form that is not compiled; test_frame_cutter.py has the other one too."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from gateway.net.streams.masks import unmask

KEY = b"\x11\x22\x33\x44"


@given(st.binary(max_size=70), st.binary(min_size=4, max_size=4), st.integers(0, 70), st.integers(0, 70))
def test_each_byte_loses_its_byte_of_the_key(data, key, start, size):
    start = min(start, len(data))
    end = min(start + size, len(data))
    assert unmask(data, start, end, key) == bytes(byte ^ key[at % 4] for at, byte in enumerate(data[start:end]))


@pytest.mark.parametrize(
    ("start", "end", "key"), [(-1, 2, KEY), (2, 1, KEY), (0, 9, KEY), (0, 8, KEY[:3]), (0, 8, KEY + b"5")]
)
def test_nothing_outside_is_read(start, end, key):
    with pytest.raises(IndexError):
        unmask(bytes(8), start, end, key)
