from __future__ import annotations

from gateway.mqtt.backlog import Backlog, RetainedWalk
from gateway.mqtt.session import Session, Subscription


def make_subscription():
    return Subscription(Session(b"c", is_persistent=True), b"t/#", 1, 0, 0)


def test_backlog_is_done_when_nothing_is_left():
    subscription = make_subscription()
    backlog = Backlog(subscription.session)
    assert backlog.is_done
    backlog.resend_until = 3
    assert not backlog.is_done
    backlog.resend_from = 3
    backlog.retained.append(RetainedWalk(iter(()), 1, subscription, 0))
    assert not backlog.is_done


def test_first_walk_wants_every_record():
    walk = RetainedWalk(iter(()), 1, make_subscription(), 100)
    assert walk.is_wanted(b"old", 99)
    assert walk.is_wanted(b"new", 100)


def test_second_walk_leaves_out_what_comes_by_the_queue_and_what_is_in_flight():
    subscription = make_subscription()
    subscription.session.retained_inflight = {7: b"in flight"}
    walk = RetainedWalk(iter(()), 1, subscription, 100, is_again=True)
    subscription.session.retained_inflight.clear()  # acknowledged since
    assert walk.is_wanted(b"old", 99)
    assert not walk.is_wanted(b"new", 100)
    assert not walk.is_wanted(b"in flight", 5)
