from __future__ import annotations

from gateway.mqtt.backlog import GATHERED_MAX, Backlog, CatchUpWalk, RetainedWalk
from gateway.mqtt.catch_up import CatchUp
from gateway.mqtt.session import GONE, Session, Subscription

ALL = 2**62


def make_subscription():
    return Subscription(Session(b"c", b"", is_persistent=True), b"t/#", 1, 0, 0)


def test_backlog_is_done_when_nothing_is_left(world):
    subscription = make_subscription()
    backlog = Backlog(world.broker, subscription.session, lambda _: None)
    assert backlog.is_done
    backlog.resend_until = 3
    assert not backlog.is_done
    backlog.resend_from = 3
    backlog.retained.append(RetainedWalk(iter(()), 1, subscription, ALL))
    assert not backlog.is_done


def walk_of(catch_up, *offsets):
    return CatchUpWalk(iter(offsets), lambda offset: b"%d" % offset, make_subscription(), catch_up)


def take_all(walk):
    taken = []
    while not walk.is_over:
        record = walk.take()
        if record is not None:
            taken.append(record)
    return taken


def test_walk_gives_every_record_that_matches():
    walk = RetainedWalk(iter([(b"t/1", b"one"), (b"t/2", b"two")]), 0, make_subscription(), ALL)
    assert take_all(walk) == [b"one", b"two"]


def test_walk_of_a_subscription_that_is_given_up_is_over():
    subscription = make_subscription()
    walk = RetainedWalk(iter([(b"t/1", b"one")]), 0, subscription, ALL)
    subscription.state = GONE
    assert take_all(walk) == []


def test_catch_up_walk_gives_what_is_between_cursor_and_end_in_the_order_of_the_log():
    catch_up = CatchUp(0, b"t/#", 100)
    catch_up.cursor = 10
    walk = walk_of(catch_up, 70, 9, 10, 100, 99, *range(20, 60))
    assert take_all(walk) == [b"%d" % offset for offset in (10, *range(20, 60), 70, 99)]
    assert catch_up.cursor == 100


def test_catch_up_walk_looks_at_a_few_matches_at_a_time():
    offsets = iter(range(1_000))
    walk = CatchUpWalk(offsets, bytes, make_subscription(), CatchUp(0, b"t/#", 1_000))
    assert walk.take() is None
    assert next(offsets) <= GATHERED_MAX


def test_catch_up_walk_leaves_out_what_is_not_retained_any_more():
    walk = CatchUpWalk(iter([1, 2, 3]), {1: b"1", 3: b"3"}.get, make_subscription(), CatchUp(0, b"t/#", 100))
    assert take_all(walk) == [b"1", b"3"]


def test_restart_of_a_catch_up_ends_its_walk_and_leaves_the_cursor():
    catch_up = CatchUp(0, b"t/#", 100)
    walk = walk_of(catch_up, 1, 2)
    walk.take()
    catch_up.round += 1
    assert take_all(walk) == []
    assert catch_up.cursor == 0


def test_next_walk_of_a_catch_up_goes_on_without_looking_again():
    catch_up = CatchUp(0, b"t/#", 100)
    first = walk_of(catch_up, 3, 1, 2)
    while first.take() != b"1":
        pass
    assert take_all(walk_of(catch_up)) == [b"2", b"3"]
