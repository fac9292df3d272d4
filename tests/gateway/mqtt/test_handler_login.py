"""Logins at the door: a password check holds up its own client and nobody else."""

from __future__ import annotations

import pytest

from core.message import StoredBatch
from core.properties import decode_properties
from gateway.auth.denials import SAID_MAX
from gateway.auth.password_checks import WAITING_MAX
from tests.support import mqtt
from tests.support.logins import quick_hash
from tests.support.mqtt import connack, puback, publish, suback, subscribe

KEPT = quick_hash("secret")
ALICE = {"user": b"alice", "password": b"secret"}


@pytest.fixture
def world(make_world):
    world = make_world(auth={"users": {"alice": {"password_hash": KEPT}}})
    world.checks.holds = True
    return world


@pytest.mark.at_once(reason="looks right after the login, when no claim was granted yet")
def test_client_waits_for_its_login_and_the_others_do_not(world):
    waiting = world.connect(b"a", **ALICE)
    assert waiting.take() == []
    subscriber = world.client(b"s", (b"t", 0))
    world.client(b"p").send(publish(b"t", b"x"))
    assert subscriber.bodies() == [b"x"]
    world.checks.finish()
    assert waiting.take() == [connack()]
    waiting.send(publish(b"t", b"mine", qos=1, packet_id=5))
    assert waiting.take() == [puback(5)]
    assert subscriber.bodies() == [b"mine"]


@pytest.mark.here(reason="its own message is here before its acknowledgement")
def test_what_came_with_the_connect_is_done_after_the_login_in_order(world):
    peer = world.dial()
    peer.send(
        mqtt.connect(b"a", **ALICE),
        subscribe(1, (b"t", 0)),
        publish(b"t", b"1", qos=1, packet_id=2),
        publish(b"t", b"2", qos=1, packet_id=3)[:-1],
    )
    assert peer.take() == []
    assert world.broker.explain(b"t") == []
    world.checks.finish()
    world.turn()
    assert peer.take() == [connack(), suback(1, 0), publish(b"t", b"1"), puback(2)]
    peer.send(b"2")
    assert peer.take() == [publish(b"t", b"2"), puback(3)]


@pytest.mark.here(reason="its own message is here before its acknowledgement")
def test_what_comes_during_the_login_is_done_after_it_and_no_more_is_read(world):
    peer = world.dial().send(mqtt.connect(b"a", **ALICE), subscribe(1, (b"t", 0))[:3])
    assert peer.transport.is_reading
    peer.send(subscribe(1, (b"t", 0))[3:], publish(b"t", b"1", qos=1, packet_id=2)[:4])
    assert not peer.transport.is_reading
    assert peer.take() == []
    world.checks.finish()
    world.turn()
    assert peer.transport.is_reading
    assert peer.take() == [connack(), suback(1, 0)]
    peer.send(publish(b"t", b"1", qos=1, packet_id=2)[4:])
    assert peer.take() == [publish(b"t", b"1"), puback(2)]


def test_client_that_closes_during_its_login_is_not_checked(world):
    first = world.connect(b"a", user=b"alice", password=b"1")
    second = world.connect(b"b", user=b"alice", password=b"2").end()
    assert second.is_closed
    second.handler.on_closed(world.now_ms)
    first.end()
    world.checks.finish_all()
    assert world.checks.count == 1
    assert first.take() == second.take() == []


def test_what_came_with_a_refused_connect_is_not_done(world):  # MQTT-3.1.4-5
    subscriber = world.client(b"s", (b"t", 0))
    peer = world.dial().send(mqtt.connect(b"a", user=b"alice", password=b"wrong"), publish(b"t", b"x"))
    world.checks.finish()
    world.turn()
    assert peer.take() == [connack(4)]
    assert peer.is_closed
    assert subscriber.bodies() == []
    assert world.counts.refused == {"bad_credentials": 1}


def test_client_that_goes_away_during_its_login_leaves_nothing_behind(world):
    watcher = world.client(b"w", (b"w/#", 0))
    peer = world.connect(b"a", clean=False, will=(b"w/t", b"gone", 0, False), **ALICE)
    peer.vanish()
    world.checks.finish_all()
    world.turn()
    assert watcher.bodies() == []
    assert peer.take() == []
    assert world.door.sessions.find(b"a") is None
    assert len(world.store.table("mqtt_wills")) == 0
    assert not world.door.strangers
    assert world.counts.connections == 1


def test_time_to_connect_goes_on_during_the_login(world):
    peer = world.connect(b"a", **ALICE)
    world.now_ms += world.settings.connect_timeout_ms - 1
    peer.handler.on_timer(world.now_ms)
    assert not peer.is_closed
    world.now_ms += 1
    peer.handler.on_timer(world.now_ms)
    assert peer.take() == [connack(3)]
    assert peer.is_closed
    world.checks.finish_all()
    assert world.door.sessions.find(b"a") is None
    assert world.counts.refused == {"connect_timeout": 1}


@pytest.mark.at_once(reason="looks right after the login, when no claim was granted yet")
def test_keep_alive_begins_with_the_login(world):
    peer = world.connect(b"a", keep_alive_s=2, **ALICE)
    world.now_ms += 5_000
    world.checks.finish()
    peer.handler.on_timer(world.now_ms + 2_999)
    assert not peer.is_closed
    peer.handler.on_timer(world.now_ms + 3_000)
    assert peer.is_closed


def test_client_that_sends_no_more_during_its_login_is_served_and_closed(world):
    subscriber = world.client(b"s", (b"t", 0))
    peer = world.dial().end(mqtt.connect(b"a", **ALICE), publish(b"t", b"x", qos=1, packet_id=1))
    assert not peer.is_closed
    world.checks.finish()
    world.turn()
    assert peer.take() == [connack(), puback(1)]
    assert subscriber.bodies() == [b"x"]
    assert peer.is_closed


def test_a_client_takes_over_during_no_login_but_after_it(world):
    first = world.client(b"a")
    second = world.connect(b"a", user=b"alice", password=b"wrong")
    assert not first.is_closed
    world.checks.finish()
    assert second.take() == [connack(4)]
    assert not first.is_closed


def test_client_is_told_to_come_again_where_too_many_wait(world):
    peers = [world.connect(b"%d" % number, user=b"alice", password=b"%d" % number) for number in range(WAITING_MAX + 2)]
    told = [peer for peer in peers if peer.is_closed]
    assert [peer.take() for peer in told] == [[connack(3)]]


def test_logins_under_way_end_with_the_gateway(world):
    peer = world.connect(b"a", **ALICE)
    world.door.stop(world.now_ms)
    assert peer.is_closed
    world.checks.finish_all()
    assert peer.take() == []


def test_name_that_nobody_knows_is_refused_as_a_wrong_password_is_once_there_are_users(world):
    for number, name in enumerate((b"bob", b"alice"), 1):
        peer = world.connect(b"c", user=name, password=b"anything")
        assert peer.take() == []
        world.checks.finish()
        assert peer.take() == [connack(4)]
        assert world.counts.refused == {"bad_credentials": number}


def test_name_that_nobody_checks_is_let_in_where_there_are_no_users_and_not_taken_for_one(make_world):
    world = make_world()
    stored = world.client(b"reader", (b"t", 1))
    world.client(b"b", user=b"bob", password=b"anything").send(publish(b"t", b"x"))
    assert stored.bodies() == [b"x"]
    queue_ref = world.broker.find_queue(world.store_settings.parent_topic.encode() + b"/0")
    assert b"LMQ_USER" not in _properties(world, queue_ref)


def _properties(world, queue_ref):
    batch = StoredBatch(1)
    world.broker.read(queue_ref, 0, batch, 1, 1 << 20)
    return decode_properties(batch.buf[batch.properties_start[0] : batch.properties_end[0]])


def test_what_is_denied_is_said_a_few_times_and_counted(make_world, caplog):
    joe = {"password_hash": KEPT, "may_publish": False, "may_subscribe": False}
    world = make_world(auth={"users": {"joe": joe}})
    peer = world.client(b"j", user=b"joe", password=b"secret")
    conn_id = peer.transport.conn_id
    peer.send(subscribe(1, (b"a", 0), (b"$share/g/a", 0)), publish(b"t", b"1"), publish(b"t", b"2"))
    peer.send(publish(b"t", b"3"))
    for number in range(1_000):
        peer.send(publish(b"t/%d" % number, b"x"))
    peer.vanish()
    said = [one.getMessage() for one in caplog.records]
    assert said[:3] == [
        f"denied subscription conn={conn_id} user=joe name=a",
        f"denied subscription conn={conn_id} user=joe name=$share/g/a",
        f"denied publish conn={conn_id} user=joe name=t",
    ]
    assert len(said) == SAID_MAX + 1
    assert said[-1] == f"denied more conn={conn_id} user=joe count={1_003 + 1 - SAID_MAX}"


def test_each_end_has_its_reason(world):
    by_itself = world.client(b"a").send(mqtt.DISCONNECT)
    taken_over = world.client(b"b")
    world.client(b"b")
    wrong = world.client(b"c").send(b"\xff\xff")
    refused = world.connect(b"", clean=False)
    lost = world.client(b"d")
    lost.vanish()
    silent = world.client(b"e", keep_alive_s=1)
    silent.handler.on_timer(world.now_ms + 1_500)
    stopped = world.client(b"f")
    world.door.stop(world.now_ms)
    peers = (by_itself, taken_over, wrong, refused, lost, silent, stopped)
    assert [peer.transport.end_reason for peer in peers] == [
        "disconnect",
        "taken over by a new connection",
        "malformed_packet",
        "refused: client identifier",
        "",
        "keep_alive_timeout",
        "the gateway stops",
    ]
