from __future__ import annotations

import pytest

from gateway.auth.user_quotas import Quota, UserQuotas
from gateway.settings import AuthSettings, UserSettings
from gateway.user_limit_settings import UserLimitsSettings
from tests.gateway.auth.test_stored_rules import Rows


@pytest.fixture
def rows():
    return Rows()


def _make(rows, for_all=None, **users):
    told = {name: UserSettings(limits=UserLimitsSettings(**limits)) for name, limits in users.items()}
    quotas = UserQuotas(AuthSettings(users=told, user_limits=UserLimitsSettings(**(for_all or {}))))
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
    assert quotas.stored == dict(rows) == {}


def test_connections_count_once_each_until_they_leave(rows):
    quotas = _make(rows, {"connections_max": 2})
    assert [quotas.enter("ann", seat) for seat in ("a", "b", "a", "c")] == [None, None, None, 2]
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
