from __future__ import annotations

import pytest

from gateway.auth import user_quotas
from gateway.auth.user_quotas import Over, Quota, UserQuotas
from gateway.settings.models import AuthSettings, UserSettings
from gateway.settings.user_limits import UserLimitsSettings
from tests.gateway.auth.test_stored_rules import Rows


@pytest.fixture
def rows():
    return Rows()


def _make(rows, for_all=None, **users):
    told = {name: UserSettings(limits=UserLimitsSettings(**limits)) for name, limits in users.items()}
    quotas = UserQuotas(AuthSettings(users=told, user_limits=UserLimitsSettings(**(for_all or {}))), int)
    quotas.keep(rows)
    return quotas


def test_settings_of_a_user_go_before_what_was_set_and_that_before_what_is_for_all(rows):
    quotas = _make(rows, {"connections_max": 5, "bytes_rate": 7}, ann={"connections_max": 3})
    quotas.set("ann", "max-connections", 1)
    quotas.set("ann", "max-channels", 9)
    quotas.set("bob", "max-connections", 0)
    assert quotas.find("ann") == Quota(3, 9, -1, 7)
    assert quotas.find("bob") == Quota(0, -1, -1, 7)
    assert quotas.find("eve") == Quota(5, -1, -1, 7)
    assert quotas.find("") == quotas.find("$bridge/b") == Quota()
    assert _make(rows).stored == {"ann": {"max-connections": 1, "max-channels": 9}, "bob": {"max-connections": 0}}


def test_limits_are_taken_back_one_by_one_or_with_their_user(rows):
    quotas = _make(rows)
    quotas.set("ann", "max-connections", 1)
    quotas.set("ann", "max-connections", -1)
    quotas.set("ann", "max-connections", -1)
    quotas.set("bob", "max-channels", 1)
    quotas.forget("bob")
    quotas.forget("bob")
    assert quotas.stored == {}
    assert list(_make(rows).stored) == ["bob"]  # a killed process may have the user again: without limits it could more
    quotas.write_off("bob")
    quotas.write_off("bob")
    assert dict(rows) == {}


def test_limits_of_the_next_user_of_a_name_stay(rows):
    quotas = _make(rows)
    quotas.set("bob", "max-channels", 1)
    quotas.forget("bob")
    quotas.set("bob", "max-channels", 2)
    quotas.write_off("bob")
    assert _make(rows).stored == {"bob": {"max-channels": 2}}


class Seat:
    """A connection, whose socket may be closed before its end is told."""

    def __init__(self):
        self.transport = self
        self.number = 1

    def fileno(self):
        return self.number


@pytest.mark.parametrize("limit", [2, 2_000])
def test_a_connection_whose_socket_is_closed_takes_no_place_of_its_client_that_is_back(rows, limit, monkeypatch):
    monkeypatch.setattr(user_quotas, "LOOKED_AT_MAX", 100)
    quotas = _make(rows, {"connections_max": limit})
    seats = [Seat() for _ in range(limit)]
    assert {quotas.enter("ann", seat) for seat in seats} == {None}
    assert quotas.enter("ann", Seat()) == Over(limit)
    seats[0].number = -1
    assert quotas.enter("ann", Seat()) == (None if limit == 2 else Over(limit))  # of very many all count
    assert quotas.enter("ann", Seat()) == Over(limit)


def test_connections_count_once_each_until_they_leave(rows):
    quotas = _make(rows, {"connections_max": 2})
    assert [quotas.enter("ann", seat) for seat in ("a", "b", "a", "c")] == [None, None, None, Over(2)]
    assert quotas.enter("bob", "c") is None
    assert quotas.count("ann", len) == 2
    quotas.leave("ann", "c")
    quotas.leave("ann", "a")
    assert quotas.enter("ann", "c") is None
    for seat in "abc":
        quotas.leave("ann", seat)
        quotas.leave("bob", seat)
        assert quotas.enter("", seat) is None
    assert quotas._seats == {}


def test_logins_a_second_count_also_those_that_left_and_not_those_that_are_in(rows):
    now_ms = [0]
    quotas = UserQuotas(AuthSettings(user_limits=UserLimitsSettings(connects_rate=2)), lambda: now_ms[0])
    assert [quotas.enter("ann", seat) for seat in ("a", "b", "a", "c")] == [None, None, None, Over(2, is_rate=True)]
    quotas.leave("ann", "a")
    quotas.leave("ann", "b")
    assert str(quotas.enter("ann", "c")) == "user connection rate limit (2) is reached"
    assert quotas.enter("bob", "x") is quotas.enter("", "y") is None
    now_ms[0] = 500
    assert [quotas.enter("ann", seat) for seat in "cd"] == [None, Over(2, is_rate=True)]
    assert [quotas.log_in(user) for user in ("ann", "bob", "bob", "")] == [Over(2, is_rate=True), None, None, None]
    assert quotas.log_in("bob") == quotas.enter("bob", "y") == Over(2, is_rate=True)


def test_what_a_user_is_sent_has_rates_of_its_own(rows):
    quotas = _make(rows, {"messages_rate": 3}, ann={"messages_out_rate": 5, "bytes_out_rate": 7})
    out = quotas.find_out_rates("ann", 0)
    assert ([rate.per_s for rate in out.messages], [rate.per_s for rate in out.sizes]) == ([5], [7])
    assert quotas.find_rates("ann", 0).messages[0].per_s == 3
    assert quotas.find_out_rates("bob", 0) is None
