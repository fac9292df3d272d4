"""What may wait for a session: by the settings, or less by an address; over a restart."""

from __future__ import annotations

from gateway.mqtt.queued_limits import NO_MAX, QueuedLimits, WaitingMax
from gateway.mqtt.session import Session
from tests.support.stores import Rows


def make(client_id=b"c", *, is_persistent=True):
    return Session(client_id, b"", is_persistent=is_persistent)


def test_lower_limit_counts_and_none_is_higher_than_any():
    limits = QueuedLimits(Rows(), WaitingMax(10, 0))
    for own, found in ((WaitingMax(3, 5), (3, 5)), (WaitingMax(30, 0), (10, 0)), (NO_MAX, (10, 0))):
        limits.note(make(), own)
        assert limits.of(make()) == found
    assert limits.of(make(b"other")) == (10, 0)


def test_limits_of_persistent_sessions_are_there_after_a_restart():
    rows = Rows()
    before = QueuedLimits(rows, NO_MAX)
    before.note(make(), WaitingMax(3, 2**40))
    before.note(make(b"clean", is_persistent=False), WaitingMax(4, 4))
    assert before.of(make(b"clean")) == (4, 4)
    after = QueuedLimits(rows, NO_MAX)
    assert (after.of(make()), after.of(make(b"clean"))) == ((3, 2**40), NO_MAX)
    assert after.own_clients() == [b"c"]
    after.forget(b"c")
    assert rows == {}


def test_nothing_is_asked_where_there_is_no_limit():
    limits = QueuedLimits(Rows(), NO_MAX)
    assert (limits.has_any, limits.has_bytes) == (False, False)
    limits.note(make(), WaitingMax(1, 0))
    assert limits.has_any
