from __future__ import annotations

import pytest
from pydantic import ValidationError

from gateway.settings.delay_levels import DEFAULT_LEVELS, LEVELS_COUNT_MAX, parse_delay_levels
from gateway.settings.models import RocketmqSettings


def test_the_default_levels_are_those_of_official_brokers():
    seconds = (1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)
    assert parse_delay_levels(DEFAULT_LEVELS) == tuple(1000 * wait for wait in seconds)


def test_levels_are_seconds_minutes_hours_and_days():
    assert parse_delay_levels(" 2s  3m 4h\t5d ") == (2_000, 180_000, 14_400_000, 432_000_000)
    assert RocketmqSettings(delay_levels=" 2s  3m").delay_levels == "2s 3m"


@pytest.mark.parametrize(
    "text", ["", " ", "0s", "1", "s", "-1s", "1.5s", "1ms", "401d", "1s,2s", "1S", "1s " * 65, "1" * 999]
)
def test_levels_that_are_none_are_refused(text):
    with pytest.raises(ValidationError):
        RocketmqSettings(delay_levels=text)


def test_as_many_levels_as_there_may_be_are_taken():
    assert len(parse_delay_levels("1s " * LEVELS_COUNT_MAX)) == LEVELS_COUNT_MAX
