from __future__ import annotations

from gateway.rocketmq.uniq_key import UniqPrefix
from tests.support.rocketmq_door import NOW_MS


def test_keys_begin_with_the_milliseconds_of_the_month():
    prefix = UniqPrefix(0x1234)
    first = prefix.at(NOW_MS)
    assert len(first) == 28
    assert first.startswith(b"7F0000011234")
    assert prefix.at(NOW_MS + 1) != first
    assert int(prefix.at(1_790_812_800_000)[20:], 16) == 0  # 2026-10-01T00:00Z
