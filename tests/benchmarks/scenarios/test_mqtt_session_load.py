"""What a publish beside offline sessions is held against."""

from __future__ import annotations

import pytest

from tests.benchmarks.scenarios.mqtt_session_load import BLOCK, compare


def test_the_rate_without_is_of_all_blocks_like_the_rate_beside_and_the_share_is_of_their_medians():
    found = compare([1.0, 1.0, 4.0], [2.0, 2.0, 2.0])  # seconds a block; a slow sync fell into one of them
    assert found["rate_without"] == pytest.approx(3 * BLOCK / 6)
    assert found["share"] == pytest.approx(0.5)
