"""A durable session is loaded for its client, after the claim; what has to be known before that is."""

from __future__ import annotations

import gc

import pytest

from core.settings import StoreSettings
from gateway.mqtt.claims import SESSION_KEY
from gateway.mqtt.session import Session
from tests.support import mqtt
from tests.support.late_engine import make_late
from tests.support.logins import quick_hash
from tests.support.mqtt import publish, pubrec

DAY_MS = 86_400_000


def restart(world):
    world.close()
    world.open()


def loaded(world):
    return [session.client_id for session in world.door.sessions.loaded()]


def told(world):
    inventory = world.door.inventory()
    sessions = [one for one in inventory.sessions() if one is not None]
    return sorted(sessions), {one.client: list(inventory.subscriptions(one.client)) for one in sessions}


def publish_all(world, *messages, qos=1):
    packets = [publish(topic, body, qos=qos, packet_id=i + 1) for i, (topic, body) in enumerate(messages)]
    world.client(b"publisher").send(*packets).vanish()


def leave(world, client_id, *filters):
    world.client(client_id, *filters, clean=False).vanish()


def test_a_start_loads_no_session_and_a_client_its_own(world):
    for name in (b"a", b"b", b"c"):
        leave(world, name, (b"t/%b" % name, 1), (b"all", 1))
    restart(world)
    assert (loaded(world), len(world.door.sessions), world.counts.sessions) == ([], 3, 3)
    assert world.door.sessions.idle_count == 3
    publish_all(world, (b"t/a", b"1"), (b"all", b"2"), (b"t/b", b"3"))
    assert sorted(world.connect(b"b", clean=False).bodies()) == [b"2", b"3"]
    assert (loaded(world), world.door.sessions.idle_count) == ([b"b"], 2)
    restart(world)
    assert sorted(world.connect(b"a", clean=False).bodies()) == [b"1", b"2"]


def test_a_session_is_loaded_after_its_claim(make_world):
    world = make_world(make_engine=make_late)
    leave(world, b"c", (b"t", 1))
    restart(world)
    peer = world.dial()
    peer.begin(mqtt.connect(b"c", clean=False))
    assert (world.engine.claimed, loaded(world)) == ([SESSION_KEY + b"c"], [])
    world.turn()
    assert peer.take() == [mqtt.connack(0, session_present=True)]
    assert loaded(world) == [b"c"]


def test_a_client_that_may_not_have_a_session_does_not_load_it(make_world):
    users = {"ann": {"password_hash": quick_hash("pw")}, "bob": {"password_hash": quick_hash("pw")}}
    world = make_world(auth={"users": users})
    world.client(b"c", (b"t", 1), clean=False, user=b"ann", password=b"pw").vanish()
    restart(world)
    assert world.connect(b"c", clean=False, user=b"bob", password=b"pw").take() == [mqtt.connack(5)]
    assert loaded(world) == []


def test_operators_are_told_the_same_before_and_after_it_is_loaded(world):
    leave(world, b"plain", (b"a/#", 1), (b"b", 0))
    leave(world, b"shared", (b"$share/g/a/#", 1), (b"$share/g/a/#", 2), (b"$exclusive/x", 2))
    leave(world, b"replay", (b"$replay/first/a/#", 1))
    publish_all(world, *[(b"a/b", b"%d" % i) for i in range(5)])
    restart(world)
    before = told(world)
    places = list(world.door.inventory().places()), sorted(world.door.sessions.held_positions())
    fates = [one for one in world.door.inventory().fates(b"%LMQ%mqtt%a%|h", 2) if one]
    assert loaded(world) == []
    for session in list(world.door.sessions):
        assert world.door.sessions.find(session.client_id) is not None
    assert len(loaded(world)) == 3
    assert told(world) == before
    assert (list(world.door.inventory().places()), sorted(world.door.sessions.held_positions())) == places
    assert [one for one in world.door.inventory().fates(b"%LMQ%mqtt%a%|h", 2) if one] == fates


def test_to_tell_one_subscription_does_not_make_all_of_its_session(world, monkeypatch):
    leave(world, b"a", *((b"t/%d" % i, i % 3) for i in range(30)))
    publish_all(world, *((b"t/%d" % i, b"x") for i in range(30)))
    restart(world)
    expected = list(world.door.inventory().subscriptions("a"))
    made, loader = [], world.door.sessions.loader
    make = loader._make
    monkeypatch.setattr(loader, "_make", lambda *one: made.append(one) or make(*one))
    inventory = world.door.inventory()
    assert [inventory.describe_subscription(*one) for one in inventory.filters() if one is not None] == expected
    assert (len(made), loaded(world)) == (30, [])
    assert inventory.describe_subscription(b"a", b"none") is None


def sessions_in_memory():
    return sum(type(one) is Session for one in gc.get_objects())  # isinstance asks proxies, also dead ones


def test_looking_at_all_sessions_leaves_nothing_for_the_collector(world):
    leave(world, b"c", (b"a", 1), (b"b", 1))
    restart(world)
    gc.collect()
    gc.disable()
    try:
        before = sessions_in_memory()  # of tests before this one
        told(world)
        assert [one.client_id for one in world.door.sessions] == [b"c"]
        assert sessions_in_memory() == before
    finally:
        gc.enable()


def test_what_a_session_that_is_not_loaded_has_not_read_is_kept(make_world):
    world = make_world(store_settings=StoreSettings(segment_bytes=1024 * 1024))
    leave(world, b"c", (b"a", 1), (b"b", 1), (b"zero", 0))
    publish_all(world, (b"a", b"1"), (b"b", b"2"))
    held = sorted(world.door.sessions.held_positions())
    assert [position for _, position in held] == [0, 0]
    restart(world)
    assert sorted(world.door.sessions.held_positions()) == held


def test_shared_and_exclusive_filters_are_a_sessions_that_is_not_loaded(world):
    leave(world, b"a", (b"$share/g/t", 1), (b"$exclusive/x", 1))
    restart(world)
    publish_all(world, (b"t", b"waits"))
    peer = world.client(b"other").send(mqtt.subscribe(1, (b"$exclusive/x", 1)))
    assert peer.take() == [mqtt.suback(1, 0x80)]
    assert world.connect(b"a", clean=False).bodies() == [b"waits"]
    world.client(b"a", clean=True).vanish()
    peer.send(mqtt.subscribe(1, (b"$exclusive/x", 1)))
    assert peer.take() == [mqtt.suback(1, 1)]
    assert world.door.subscribing.sharing.group_count == 0
    assert world.broker.explain(b"t") == []


def test_a_session_that_nobody_comes_back_to_ends_without_having_been_loaded_before(make_world):
    world = make_world(session_expiry_s=3_600)
    leave(world, b"old", (b"t", 1))
    world.now_ms += 1_000_000
    leave(world, b"young", (b"t", 1))
    restart(world)
    world.now_ms += 3_600_000 - 1_000_000
    world.door.tend(world.now_ms)
    world.turn()
    assert (len(world.door.sessions), loaded(world)) == (1, [])
    world.now_ms += 1_000_000
    assert world.connect(b"young", clean=False).take() == [mqtt.connack(0, session_present=False)]
    world.door.tend(world.now_ms)
    world.turn()
    restart(world)
    assert [one.client_id for one in world.door.sessions.outlines()] == [b"young"]


def test_clients_that_were_connected_when_the_process_was_killed_are_idle_since_the_start(make_world):
    world = make_world(session_expiry_s=60)
    world.client(b"c", (b"t", 1), clean=False)
    world.now_ms += DAY_MS
    restart(world)
    world.now_ms += 59_000
    world.door.tend(world.now_ms)
    world.turn()
    assert len(world.door.sessions) == 1
    world.now_ms += 1_000
    world.door.tend(world.now_ms)
    world.turn()
    assert len(world.door.sessions) == 0


def test_sessions_of_a_user_that_is_no_more_end_also_when_they_are_not_loaded(make_world):
    world = make_world(auth={"users": {"ann": {"password_hash": quick_hash("pw")}}})
    world.client(b"hers", (b"t", 1), clean=False, user=b"ann", password=b"pw").vanish()
    restart(world)
    world.door.end_sessions_of("ann")
    world.turn()
    assert len(world.door.sessions) == 0
    assert world.broker.explain(b"t") == []


@pytest.mark.parametrize("starts", [1, 3])
def test_sessions_in_the_middle_of_qos_2_go_on_there_however_many_starts_later(world, starts):
    middle = world.client(b"middle", (b"t", 2), clean=False)
    ended = world.client(b"ended", (b"t", 2), clean=False)
    sender = world.client(b"sender", clean=False).send(publish(b"t", b"x", qos=2, packet_id=9))
    for peer in (middle, ended):
        (message,) = map(mqtt.parse_publish, peer.take())
        peer.send(pubrec(message.packet_id))
    ended.take()
    ended.send(mqtt.pubcomp(message.packet_id))
    for peer in (middle, ended, sender):
        peer.vanish()
    for _ in range(starts):
        restart(world)
    assert {one.client: one.inflight for one in world.door.inventory().sessions()} == {
        "middle": 1,
        "ended": 0,
        "sender": 0,
    }
    assert loaded(world) == []
    assert world.connect(b"ended", clean=False).take() == [mqtt.connack(0, session_present=True)]
    again = world.connect(b"sender", clean=False).send(publish(b"t", b"x", qos=2, packet_id=9, dup=True))
    assert again.take()[1:] == [pubrec(9)]
    assert world.connect(b"middle", clean=False).take()[1:] == [mqtt.pubrel(message.packet_id)]


def test_a_message_that_a_client_has_of_a_shared_subscription_is_nobody_elses_before_it_comes_back(world):
    mine = world.client(b"mine", (b"$share/g/t", 2), clean=False)
    publish_all(world, (b"t", b"x"), qos=2)
    assert mine.bodies() == [b"x"]
    mine.vanish()
    restart(world)
    other = world.client(b"other", (b"$share/g/t", 2))
    publish_all(world, (b"t", b"next"), qos=2)
    assert other.bodies() == [b"next"]
    assert b"mine" not in loaded(world)
    assert [mqtt.parse_publish(one).body for one in world.connect(b"mine", clean=False).take()[1:]] == [b"x"]


@pytest.mark.parametrize("body", [b"1", b"2"])
def test_retained_messages_that_are_owed_come_after_two_starts(world, body):
    world.client(b"p").send(publish(b"t", body, qos=1, packet_id=1, retain=True))
    peer = world.connect(b"c", clean=False)
    peer.send(mqtt.subscribe(1, (b"t", 1)))
    peer.vanish()
    restart(world)
    restart(world)
    (told_before,) = [one for one in world.door.inventory().sessions() if one.client == "c"]
    assert (told_before.inflight, loaded(world)) == (1, [])
    assert world.connect(b"c", clean=False).bodies() == [body]
    restart(world)
    assert world.connect(b"c", clean=False).bodies() == [body]


@pytest.mark.parametrize("walk", ["held_positions", "behind"])
def test_a_walk_over_what_is_held_goes_on_beside_a_session_that_comes_and_changes_meanwhile(world, walk):
    filters = [b"1", b"2", b"3"]
    leave(world, b"a", *[(one, 1) for one in filters])
    leave(world, b"b", (b"1", 1))
    restart(world)
    found = getattr(world.door.sessions, walk)()
    next(found)
    peer = world.connect(b"a", clean=False)
    peer.send(mqtt.unsubscribe(1, b"2", b"3")).take()
    assert len([one for one in found if one is not None]) == 1  # that of the other session
