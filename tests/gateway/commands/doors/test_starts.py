from __future__ import annotations

import time

from gateway.commands.doors.starts import read_start
from gateway.commands.doors.traffic import Start, StartKind


def test_words_offsets_and_moments():
    assert read_start("first") == Start(StartKind.WORD, word="first")
    assert read_start("17") == Start(StartKind.OFFSET, number=17)
    assert read_start("2026-01-31T12:00") == Start(StartKind.MOMENT, number=1_769_860_800_000)
    ago = read_start("-1h30m")
    assert abs(time.time() * 1_000 - 5_400_000 - ago.number) < 60_000
