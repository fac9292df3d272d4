from __future__ import annotations

from gateway.mqtt.session import Session, Subscription
from gateway.mqtt.session_outlines import outline_of


def test_an_outline_says_what_a_session_has_now():
    session = Session(b"c", b"me", is_persistent=True)
    session.expiry_s = 60
    assert outline_of(session) == (b"c", b"me", None, True, 60, 0, 0, 0)
    session.subscriptions[b"a"] = Subscription(session, b"a", 1, 0, 0)
    session.redelivered = 3
    assert outline_of(session) == (b"c", b"me", None, True, 60, 1, 0, 3)
