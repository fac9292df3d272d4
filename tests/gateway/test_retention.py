from __future__ import annotations

import time

import pytest

from gateway.retention import is_hour_of

DAY_MS, HOUR_MS = 86_400_000, 3_600_000


@pytest.fixture
def berlin(monkeypatch):
    monkeypatch.setenv("TZ", "CET-1")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_hours_are_those_of_this_machine(berlin):
    midnight_ms = 20_000 * DAY_MS - HOUR_MS  # at one hour east of Greenwich
    found = [hour for hour in range(24) if is_hour_of((4, 23), midnight_ms + hour * HOUR_MS + 1_800_000)]
    assert found == [4, 23]


def test_without_hours_it_is_always_time():
    assert all(is_hour_of((), hour * HOUR_MS) for hour in range(24))
