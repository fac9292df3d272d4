from __future__ import annotations

import pytest

from gateway.admin.ours.origins import read_deaths, strip_deaths

DEATH = {"queue": "jobs", "reason": "rejected", "exchange": "", "count": 2}


@pytest.mark.parametrize("said", [None, "jobs", {}, [1], [DEATH, "x"], []])
def test_deaths_that_are_not_as_they_should_be_are_none(said):
    assert read_deaths({"x-death": said}) == []


def test_deaths_are_read_the_latest_first():
    later = DEATH | {"queue": "later", "reason": "expired"}
    assert read_deaths({"x-death": [later, DEATH]}) == [("later", "expired", ""), ("jobs", "rejected", "")]


def test_only_what_the_gateway_puts_on_is_taken_off():
    own = ["x-death", "x-first-death-queue", "x-first-death-reason", "x-first-death-exchange", "x-delivery-count"]
    own += ["x-last-death-queue", "x-last-death-reason", "x-last-death-exchange"]
    headers = dict.fromkeys([*own, "x-request-id", "x-deaths", "x-first-death-of-mine"], 1)
    assert list(strip_deaths(headers)) == ["x-request-id", "x-deaths", "x-first-death-of-mine"]
