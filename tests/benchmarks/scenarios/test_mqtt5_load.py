"""What version 5 is held against."""

from __future__ import annotations

import math

import pytest

from tests.benchmarks.scenarios.load import Result
from tests.benchmarks.scenarios.mqtt5_load import compare, together


def turn(received, server_cpu_s, lost=0):
    return Result(1.0, sent=received, acked=0, received=received, load_cpu_s=0.5, server_cpu_s=server_cpu_s, lost=lost)


def test_a_message_is_compared_by_the_servers_time_of_all_turns_of_its_version():
    old, new = together([turn(1_000, 0.5), turn(3_000, 1.5)]), together([turn(1_000, 0.7), turn(1_000, 0.9, lost=2)])
    found = compare(old, new)
    assert found["beside_311"] == pytest.approx(1.6)
    assert found["rate_311"] == pytest.approx(2_000)
    assert new.lost == 2


def test_a_server_without_a_time_of_its_own_is_not_compared():
    assert math.isnan(compare(turn(10, 0.0), turn(10, 0.1))["beside_311"])
