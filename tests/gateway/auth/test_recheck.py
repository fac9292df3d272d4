from __future__ import annotations

from gateway.auth.authenticator import Authenticator
from gateway.auth.credentials import Identity
from gateway.auth.permissions import ALL
from gateway.auth.recheck import EXPIRED, LOOKS_A_STEP, TURNED_OUT, find_reason, recheck
from gateway.auth.tokens import Token
from gateway.runtime.loop import Clock
from gateway.settings.models import AuthSettings
from tests.support.logins import HandWork


class Visitor:
    def __init__(self, identity):
        self.identity = identity
        self.left_at_ms = None

    def turn_out(self, now_ms):
        self.left_at_ms = now_ms


def test_who_may_not_stay_is_turned_out_one_a_step():
    auth = Authenticator(AuthSettings(mqtt_anonymous=False), {}, Clock(), HandWork())
    guests = [Visitor(Identity("", ALL)) for _ in range(3)]
    stranger = Visitor(None)
    steps = recheck(auth, "mqtt", [guests[0], stranger, *guests[1:]], 7)
    for turned_out in range(1, 4):
        next(steps)
        assert [guest.left_at_ms for guest in guests].count(7) == turned_out
    assert list(steps) == []
    assert stranger.left_at_ms is None


def test_a_step_looks_at_some_of_many():
    auth = Authenticator(AuthSettings(), {}, Clock(), HandWork())
    visitors = [Visitor(Identity("", ALL)) for _ in range(3 * LOOKS_A_STEP)]
    assert len(list(recheck(auth, "mqtt", visitors, 7))) == 3
    assert all(visitor.left_at_ms is None for visitor in visitors)


def test_reason_is_the_end_of_the_token_where_it_has_ended():
    identity = Identity("ann", ALL, token=Token("ann", (), (), 1_000, b""))
    assert find_reason(identity, 1_000) == EXPIRED
    assert find_reason(identity, 999) == TURNED_OUT
    assert find_reason(Identity("ann", ALL), 1_000) == find_reason(None, 1_000) == TURNED_OUT
