"""Whose a session is, and what its user may still read."""

from __future__ import annotations

import pytest

from core.lmq.queue_name import mqtt_queue_name
from tests.support import mqtt
from tests.support.logins import quick_hash
from tests.support.mqtt import connack, puback, publish, unsubscribe

KEPT = quick_hash("secret")
ALICE = {"user": b"alice", "password": b"secret"}
BOB = {"user": b"bob", "password": b"secret"}
NOBODY = {"user": b"stranger", "password": b"x"}
NOT_AUTHORIZED = (5, "not_authorized")
WRONG = (4, "bad_credentials")


def users(**changes):
    """Return settings of users alice and bob, with what is to be different of them, or without one (None)."""
    found = {}
    for name in ("alice", "bob"):
        change = changes.get(name, {})
        if change is not None:
            found[name] = {"password_hash": KEPT, **change}
    return {"users": found, **{name: value for name, value in changes.items() if name not in ("alice", "bob")}}


@pytest.fixture
def world(make_world):
    return make_world(auth=users())


def restart(world, **changes):
    """Start the gateway again with other users."""
    world.close()
    world.auth = type(world.auth).model_validate(users(**changes))
    world.open()


@pytest.mark.parametrize(
    ("other", "refusal"),
    [(BOB, NOT_AUTHORIZED), (NOBODY, WRONG), ({}, NOT_AUTHORIZED)],
    ids=["another user", "a name that nobody knows", "no name"],
)
@pytest.mark.parametrize("clean", [False, True])
def test_session_of_another_user_is_neither_resumed_nor_ended(world, other, refusal, clean):
    world.client(b"c", (b"t", 1), clean=False, **ALICE).vanish()
    world.client(b"p").send(publish(b"t", b"secret", qos=1, packet_id=1))
    peer = world.connect(b"c", clean=clean, **other)
    world.checks.finish_all()
    code, reason = refusal
    assert peer.take() == [connack(code)]
    assert peer.is_closed
    assert world.counts.refused == {reason: 1}
    again = world.connect(b"c", clean=False, **ALICE)
    packets = again.take()
    assert packets[0] == connack(session_present=True)
    assert [mqtt.parse_publish(one).body for one in packets[1:]] == [b"secret"]


def test_session_of_an_anonymous_client_is_not_for_a_user(world):
    world.client(b"c", (b"t", 1), clean=False).vanish()
    assert world.connect(b"c", clean=False, **ALICE).take() == [connack(5)]
    nobody = world.connect(b"c", clean=False, **NOBODY)
    world.checks.finish_all()
    assert nobody.take() == [connack(4)]
    assert world.connect(b"c", clean=False).take() == [connack(session_present=True)]


@pytest.mark.parametrize("clean", [False, True])
def test_connection_of_another_user_is_not_taken_over(world, clean):
    watcher = world.client(b"w", (b"w/#", 0))
    first = world.client(b"c", (b"t", 0), clean=clean, will=(b"w/t", b"gone", 0, False), **ALICE)
    second = world.connect(b"c", clean=clean, will=(b"w/t", b"forged", 0, False), **BOB)
    assert second.take() == [connack(5)]
    assert not first.is_closed
    world.client(b"p").send(publish(b"t", b"x"))
    assert first.bodies() == [b"x"]
    second.handler.on_closed(world.now_ms)
    first.vanish()
    assert watcher.bodies() == [b"gone"]


def test_owner_is_known_after_the_process(world):
    world.client(b"c", (b"t", 1), clean=False, **ALICE).vanish()
    world.client(b"d", clean=False, **BOB)
    restart(world)
    assert world.connect(b"c", clean=False, **BOB).take() == [connack(5)]
    assert world.connect(b"d", clean=False, **ALICE).take() == [connack(5)]
    assert world.connect(b"c", clean=False, **ALICE).take() == [connack(session_present=True)]


def test_session_of_a_former_version_belongs_to_the_next_user(world):
    world.client(b"c", (b"t", 1), clean=False, **ALICE).vanish()
    rows = world.store.table("mqtt_sessions")
    rows.put(b"c", rows.get(b"c")[:8])
    restart(world)
    assert world.connect(b"c", clean=False, **BOB).take() == [connack(session_present=True)]
    assert world.connect(b"c", clean=False, **ALICE).take() == [connack(5)]


def test_session_of_a_user_that_is_no_more_is_ended_for_the_next(world):
    world.client(b"c", (b"t", 1), clean=False, **ALICE).vanish()
    world.client(b"p").send(publish(b"t", b"secret", qos=1, packet_id=1))
    restart(world, alice=None)
    assert world.connect(b"c", clean=False, **BOB).take() == [connack(session_present=False)]
    assert len(world.store.table("mqtt_subscriptions")) == 0


def test_anonymous_sessions_belong_to_the_next_user_once_anonymous_clients_stay_out(world):
    world.client(b"c", (b"t", 1), clean=False).vanish()
    world.client(b"p").send(publish(b"t", b"x", qos=1, packet_id=1))
    restart(world, mqtt_anonymous=False)
    again = world.connect(b"c", clean=False, **ALICE)
    packets = again.take()
    assert packets[0] == connack(session_present=True)
    assert [mqtt.parse_publish(one).body for one in packets[1:]] == [b"x"]
    assert world.connect(b"c", clean=False, **BOB).take() == [connack(5)]


def test_what_the_user_may_not_read_any_more_is_not_delivered(world, caplog):
    world.client(b"c", (b"t", 1), (b"u", 0), clean=False, **ALICE).vanish()
    world.client(b"p").send(publish(b"t", b"secret", qos=1, packet_id=1))
    restart(world, alice={"may_subscribe": False})
    again = world.connect(b"c", clean=False, **ALICE)
    world.client(b"p").send(publish(b"t", b"later"), publish(b"u", b"later"))
    assert again.take() == [connack(session_present=True)]
    assert world.broker.explain(b"t") == []
    assert len(world.store.table("mqtt_subscriptions")) == 0
    denied = [record.getMessage() for record in caplog.records if record.getMessage().startswith("denied")]
    conn_id = again.transport.conn_id
    assert denied == [f"denied subscription conn={conn_id} user=alice name={name}" for name in ("t", "u")]
    again.vanish()
    assert world.connect(b"c", clean=False, **ALICE).take() == [connack(session_present=True)]
    assert world.counts.refused == {"subscription": 2}


class OnlyPublic:
    """Rights to read some filters and not others."""

    def may_subscribe(self, topic_filter):
        return topic_filter.startswith(b"public")


def test_what_is_in_flight_is_not_sent_again_where_it_may_not_be_read_any_more(world):
    subscriber = world.client(b"c", (b"public", 1), (b"t", 1), (b"u", 1), clean=False, **ALICE)
    publisher = world.client(b"p")
    publisher.send(
        *[publish(name, b"%b %d" % (name, i), qos=1, packet_id=1) for i in range(2) for name in (b"t", b"u", b"public")]
    )
    assert len(subscriber.bodies()) == 6
    subscriber.send(unsubscribe(9, b"u"))
    subscriber.vanish()
    revoke(world)
    again = world.connect(b"c", clean=False, **ALICE)
    got = again.take_deliveries()
    assert [(one.body, one.dup) for one in got] == [(b"public 0", True), (b"public 1", True)]
    again.send(*[puback(one.packet_id) for one in got])
    publisher.send(publish(b"public", b"new", qos=1, packet_id=1), publish(b"t", b"new", qos=1, packet_id=2))
    assert again.bodies() == [b"new"]


@pytest.mark.parametrize("topic_filter", [b"t", b"$share/g/t"])
@pytest.mark.parametrize("qos", [1, 2])
def test_ends_of_what_may_not_be_read_any_more_are_noted_in_runs(world, topic_filter, qos):
    subscriber = world.client(b"c", (topic_filter, qos), (b"public", 1), clean=False, **ALICE)
    world.client(b"p").send(
        *[publish(b"t", b"%d" % i, qos=qos, packet_id=1 + i) for i in range(50)],
        *[publish(b"public", b"%d" % i, qos=1, packet_id=100 + i) for i in range(50)],
    )
    assert len(subscriber.bodies()) == 100
    subscriber.vanish()
    journals = [world.broker.engine.journal(name) for name in ("endings", "pop")]
    before = [journal.bytes_used for journal in journals]
    revoke(world)
    assert sum(journal.bytes_used for journal in journals) - sum(before) < 50 * 24  # a record each
    reader = (mqtt_queue_name(b"t"), b"mqtt:g" if topic_filter.startswith(b"$") else b"c")
    endings = world.broker.pop.endings if topic_filter.startswith(b"$") else world.broker.lasting_endings
    is_told = topic_filter == b"t" or qos == 2  # another member gets what went out at QoS 1
    for offset in range(50):
        found = endings.find(*reader, offset)
        assert (found.reason if found else "") == ("not_permitted" if is_told else "")
    again = world.connect(b"c", clean=False, **ALICE)
    assert len(again.take_deliveries()) == 50


def test_retained_messages_in_flight_are_not_sent_again_either(world):
    publisher = world.client(b"p")
    publisher.send(*[publish(name, name, qos=1, packet_id=1, retain=True) for name in (b"t/1", b"public", b"t/2")])
    subscriber = world.client(b"c", clean=False, **ALICE)
    subscriber.send(mqtt.subscribe(1, (b"t/#", 1), (b"public", 1)))
    assert sorted(subscriber.bodies()) == [b"public", b"t/1", b"t/2"]
    subscriber.vanish()
    revoke(world)
    again = world.connect(b"c", clean=False, **ALICE)
    assert again.bodies() == [b"public"]
    again.vanish()
    world.close()
    world.open()
    assert world.connect(b"c", clean=False, **ALICE).bodies() == [b"public"]


def revoke(world):
    """Do what a resumption does where the user may read no more than what is public."""
    assert world.door.subscribing.end_denied(world.door.sessions.find(b"c"), OnlyPublic())


def test_nothing_in_flight_is_sent_again_to_a_user_who_may_read_nothing_any_more(world):
    subscriber = world.client(b"c", (b"t", 1), clean=False, **ALICE)
    world.client(b"p").send(*[publish(b"t", b"%d" % i, qos=1, packet_id=1) for i in range(5)])
    assert len(subscriber.bodies()) == 5
    settings = type(world.auth).model_validate(users(alice={"may_subscribe": False}))
    world.authenticator.reload(settings, world.authenticator.make_users(settings, {}))
    again = world.connect(b"c", clean=False, **ALICE)  # takes over
    assert again.take() == [connack(session_present=True)]
    assert list(world.door.sessions.held_positions()) == []


def test_will_of_a_killed_process_is_published_as_far_as_its_user_may_now(world, caplog):
    world.client(b"w", (b"w/#", 1), clean=False)
    world.client(b"a", will=(b"w/a", b"a gone", 1, False), **ALICE)
    world.client(b"b", will=(b"w/b", b"b gone", 1, False), **BOB)
    world.client(b"n", will=(b"w/n", b"n gone", 1, False))
    restart(world, alice={"may_publish": False}, bob=None)
    assert world.connect(b"w", clean=False).bodies() == [b"n gone"]
    assert world.counts.refused == {"will_not_authorized": 2}
    assert "denied will client=a user=alice name=w/a" in caplog.text
    assert "denied will client=b user=bob name=w/b" in caplog.text
