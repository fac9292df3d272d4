"""Limits of one client: how fast it may publish, how much waits for it; and how many come in a second."""

from __future__ import annotations

import pytest

from gateway.door import ClientLimits, Listen
from gateway.mqtt.reason_codes import ReasonCode
from gateway.pacing import SharedRates, UserRates
from gateway.settings.models import GatewaySettings, MqttSettings
from tests.support import mqtt
from tests.support.logins import quick_hash
from tests.support.mqtt import connack, connect_5, puback, publish
from tests.support.mqtt_5 import connack_of
from tests.support.mqtt_door import MemoryTransport, Peer


def numbered(count, start=0):
    return [b"%d" % i for i in range(start, start + count)]


def pass_time(world, peer, ms):
    """Let time go on, and the coarse timer with it."""
    world.now_ms += ms
    if not peer.is_closed and peer.handler.next_deadline_ms() is not None:
        peer.handler.on_timer(world.now_ms)
    world.turn()


def test_client_that_publishes_too_fast_is_read_on_at_its_pace(make_world):
    world = make_world(messages_rate=10)
    subscriber = world.client(b"s", (b"t", 0))
    fast, other = world.client(b"f"), world.client(b"o")
    fast.send(*[publish(b"t", body, qos=1, packet_id=i + 1) for i, body in enumerate(numbered(35))], mqtt.PINGREQ)
    assert subscriber.bodies() == numbered(10)
    assert fast.take() == [puback(i + 1) for i in range(10)]
    assert fast.transport.is_held
    other.send(publish(b"t", b"other"))
    assert subscriber.bodies() == [b"other"]
    got = []
    for second in range(4):
        pass_time(world, fast, 1_000)
        got += subscriber.bodies()
        assert len(got) <= 10 * (second + 1)
    assert got == numbered(25, 10)
    assert not fast.transport.is_held
    assert b"\xd0\x00" in fast.take()


def test_bytes_are_limited_too_and_a_large_message_is_waited_for(make_world):
    world = make_world(bytes_rate=100)
    subscriber = world.client(b"s", (b"t", 0))
    peer = world.client(b"f").send(publish(b"t", b"x" * 350))
    assert len(subscriber.bodies()) == 1
    peer.begin(publish(b"t", b"next"))
    world.turn()
    pass_time(world, peer, 2_000)
    assert subscriber.bodies() == []
    pass_time(world, peer, 600)
    assert subscriber.bodies() == [b"next"]


def test_keep_alive_does_not_run_in_a_pause(make_world):
    world = make_world(messages_rate=1)
    peer = world.client(b"f", keep_alive_s=1).send(*[publish(b"t", body) for body in numbered(5)])
    for _ in range(8):
        pass_time(world, peer, 600)
        assert not peer.is_closed
    for _ in range(6):
        pass_time(world, peer, 600)
    assert peer.is_closed  # silent since


def test_what_came_before_a_client_left_is_published(make_world):
    world = make_world(messages_rate=2)
    subscriber = world.client(b"s", (b"t", 0))
    peer = world.client(b"f").end(*[publish(b"t", body) for body in numbered(4)])
    pass_time(world, peer, 1_000)
    assert subscriber.bodies() == numbered(4)
    assert peer.is_closed


def test_low_disk_and_a_pause_both_hold(make_world):
    world = make_world(messages_rate=1)
    peer = world.client(b"f").send(*[publish(b"t", body) for body in numbered(3)])
    world.set_free(0)
    pass_time(world, peer, 1_100)
    world.set_free(10**12)
    for _ in range(3):
        pass_time(world, peer, 1_100)
    assert world.counts.messages_in == 3


@pytest.mark.parametrize("is_5", [False, True])
def test_so_many_clients_come_in_a_second(make_world, is_5):
    world = make_world(connects_rate=2)
    assert [world.connect(name).take()[0] for name in (b"a", b"b")] == [connack()] * 2
    peer = world.dial().send(connect_5(b"c") if is_5 else mqtt.connect(b"c"))
    (data,) = peer.take()
    assert peer.is_closed
    assert connack_of(data)[1] == ReasonCode.CONNECTION_RATE_EXCEEDED if is_5 else data == connack(3)
    world.now_ms += 600
    assert world.connect(b"d").take() == [connack()]
    world.door.reload(GatewaySettings(mqtt=MqttSettings()))
    assert world.connect(b"e").take() == [connack()]


@pytest.mark.parametrize("is_5", [False, True])
def test_one_client_comes_in_so_often_a_second_and_others_as_often(make_world, is_5):
    ann = {"password_hash": quick_hash("secret")}
    world = make_world(client_connects_rate=2, auth={"users": {"ann": ann}})
    connect = connect_5 if is_5 else mqtt.connect

    def code(client_id, **login):
        (data, *_) = world.dial().send(connect(client_id, **login)).take()
        return connack_of(data)[1] if is_5 else data[3]

    refused = ReasonCode.CONNECTION_RATE_EXCEEDED if is_5 else 3
    assert [code(b"a") for _ in range(4)] == [0, 0, refused, refused]
    assert [code(b"b") for _ in range(2)] == [0, 0]
    wrong = [code(b"c", user=b"ann", password=b"guess") for _ in range(4)]
    assert refused not in wrong  # and nobody else's guesses keep a client out
    assert [code(b"c", user=b"ann", password=b"secret") for _ in range(3)] == [0, 0, refused]
    world.now_ms += 600
    assert [code(b"a") for _ in range(2)] == [0, refused]
    world.door.reload(GatewaySettings(mqtt=MqttSettings()))
    assert code(b"a") == 0


def test_client_that_comes_too_often_leaves_the_connection_and_the_session_that_it_has(make_world):
    world = make_world(client_connects_rate=1)
    first = world.client(b"a", (b"t", 1), clean=False)
    again = world.dial().send(mqtt.connect(b"a", clean=False))
    assert again.take() == [connack(3)]
    assert again.is_closed
    publish_all(world, [b"x"])
    assert take_and_acknowledge(first) == [b"x"]


@pytest.mark.parametrize("qos", [1, 2])
def test_oldest_give_way_where_too_many_wait(make_world, qos):
    world = make_world(queued_count_max=3)
    world.client(b"a", (b"t", qos), (b"u", 0), clean=False).vanish()
    world.client(b"p").send(*[publish(b"t", body, qos=qos, packet_id=i + 1) for i, body in enumerate(numbered(8))])
    queue_ref = world.door.sessions.find(b"a").subscriptions[b"t"].queue_ref
    assert dict(world.door.sessions.held_positions())[queue_ref] == 5
    again = world.connect(b"a", clean=False)
    assert again.bodies() == numbered(3, 5)
    assert world.counts.dropped == {"queue_full": 5}


def test_clients_of_one_address_may_have_rates_of_their_own(make_world):
    world = make_world(messages_rate=5)
    subscriber = world.client(b"s", (b"t", 0))
    for limits, count in ((ClientLimits(messages_rate=2), 2), (ClientLimits(), 5)):
        world.conn_id += 1
        transport = MemoryTransport(world.conn_id)
        listen = Listen("mqtt", "127.0.0.1:1883", clients=limits)
        peer = Peer(world, transport, world.door.connect_at(listen)(transport))
        peer.send(mqtt.connect(b"c%d" % count), *[publish(b"t", body) for body in numbered(9)])
        assert subscriber.bodies() == numbered(count)


# What a client is sent


def publish_all(world, bodies, qos=1, **how):
    publisher = world.client(b"p")
    publisher.send(*[publish(b"t", body, qos=qos, packet_id=i + 1, **how) for i, body in enumerate(bodies)])


def take_and_acknowledge(peer):
    found = peer.take_deliveries()
    peer.send(*[puback(one.packet_id) for one in found if one.qos])
    return [one.body for one in found]


def take_in_seconds(world, peer, count):
    """Return what a client got in each of so many seconds."""
    found = []
    for _ in range(count):
        pass_time(world, peer, 1_000)
        found.append(take_and_acknowledge(peer))
    return found


@pytest.mark.parametrize("topic_filter", [b"t", b"$share/g/t", b"$replay/0/t"])
@pytest.mark.parametrize("qos", [0, 1])
def test_client_is_sent_messages_at_its_pace_and_none_is_lost(make_world, topic_filter, qos):
    world = make_world(messages_out_rate=10)
    slow = world.client(b"s", (topic_filter, qos))
    publish_all(world, numbered(25))
    got = [take_and_acknowledge(slow), *take_in_seconds(world, slow, 3)]
    assert got == [numbered(10), numbered(10, 10), numbered(5, 20), []]
    publish_all(world, [b"later"])
    assert take_and_acknowledge(slow) == [b"later"]


def test_pace_of_one_client_is_nobody_elses(make_world):
    world = make_world()
    peers = []
    for limits in (ClientLimits(messages_out_rate=2), ClientLimits()):
        world.conn_id += 1
        transport = MemoryTransport(world.conn_id)
        listen = Listen("mqtt", "127.0.0.1:1883", clients=limits)
        peer = Peer(world, transport, world.door.connect_at(listen)(transport))
        peer.send(mqtt.connect(b"c%d" % world.conn_id), mqtt.subscribe(1, (b"t", 1))).take()
        peers.append(peer)
    publish_all(world, numbered(5))
    assert [take_and_acknowledge(peer) for peer in peers] == [numbered(2), numbered(5)]
    assert take_in_seconds(world, peers[0], 2) == [numbered(2, 2), numbered(1, 4)]


def test_bytes_that_a_client_is_sent_are_limited_too(make_world):
    world = make_world(bytes_out_rate=100)
    slow = world.client(b"s", (b"t", 1))
    publish_all(world, [b"x" * 250, b"next"])
    assert take_and_acknowledge(slow) == [b"x" * 250]
    assert take_in_seconds(world, slow, 2) == [[], [b"next"]]


def test_retained_messages_and_those_sent_again_come_at_the_pace(make_world):
    world = make_world(messages_out_rate=2)
    retained = [publish(b"r/" + name, name, retain=True, qos=1, packet_id=int(name) + 1) for name in numbered(5)]
    world.client(b"p").send(*retained)
    slow = world.connect(b"s", clean=False).send(mqtt.subscribe(1, (b"r/#", 1)))
    got = [one.body for one in slow.take_deliveries()]
    assert len(got) == 2
    pass_time(world, slow, 1_000)
    got += [one.body for one in slow.take_deliveries()]
    assert len(got) == 4
    slow.vanish()
    again = world.connect(b"s", clean=False)
    sent_again = again.take_deliveries()
    for _ in range(3):
        pass_time(world, again, 1_000)
        got_now = again.take_deliveries()
        assert len(got_now) <= 2
        sent_again += got_now
    assert [(one.body, one.dup) for one in sent_again[:4]] == [(body, True) for body in got]
    assert sorted(one.body for one in sent_again) == numbered(5)


def test_connections_of_a_user_share_what_it_is_sent(make_world):
    ann = {"password_hash": quick_hash("secret"), "limits": {"messages_out_rate": 4}}
    world = make_world(auth={"users": {"ann": ann}, "mqtt_anonymous": True})
    peers = [world.connect(name, user=b"ann", password=b"secret") for name in (b"a", b"b")]
    for peer in peers:
        peer.send(mqtt.subscribe(1, (b"t", 0))).take()
    publish_all(world, numbered(6))
    counts = [[len(peer.bodies()) for peer in peers]]
    for _ in range(4):
        world.now_ms += 1_000
        for peer in peers:
            peer.handler.on_timer(world.now_ms)
        world.turn()
        counts.append([len(peer.bodies()) for peer in peers])
    assert sum(map(sum, counts)) == 12
    assert all(sum(one) <= 4 for one in counts)


def test_what_is_sent_again_from_a_queue_comes_at_the_pace(make_world):
    world = make_world()
    world.client(b"s", (b"t", 1), clean=False)
    publish_all(world, numbered(5))
    world.door.sessions.find(b"s").outlet.sent.clear()
    world.door.reload(GatewaySettings(mqtt=MqttSettings(messages_out_rate=2)))
    again = world.connect(b"s", clean=False)
    got = [again.take_deliveries()]
    for _ in range(2):
        pass_time(world, again, 1_000)
        got.append(again.take_deliveries())
    assert [[(one.body, one.dup) for one in each] for each in got] == [
        [(b"0", True), (b"1", True)],
        [(b"2", True), (b"3", True)],
        [(b"4", True)],
    ]


def test_clients_of_one_address_share_what_they_are_sent(make_world):
    world = make_world()
    rates = UserRates(4, -1, world.now_ms)
    peers = []
    for name in (b"a", b"b"):
        world.conn_id += 1
        transport = MemoryTransport(world.conn_id)
        transport.shared = SharedRates(outgoing=(rates,))
        peers.append(Peer(world, transport, world.door.connect(transport)))
        peers[-1].send(mqtt.connect(name), mqtt.subscribe(1, (b"t", 0))).take()
    other = world.client(b"o", (b"t", 0))
    publish_all(world, numbered(4))
    assert sum(len(peer.bodies()) for peer in peers) == 4
    assert other.bodies() == numbered(4)
    world.now_ms += 1_000
    for peer in peers:
        peer.handler.on_timer(world.now_ms)
    world.turn()
    assert sum(len(peer.bodies()) for peer in peers) == 4


@pytest.mark.parametrize("topic_filter", [b"t", b"$share/g/t"])
def test_what_a_pause_held_back_goes_on_though_another_subscription_is_sent_first_after_it(make_world, topic_filter):
    world = make_world(messages_out_rate=10)
    slow = world.client(b"s", (topic_filter, 0), (b"u", 0))
    publish_all(world, numbered(15))
    assert slow.bodies() == numbered(10)
    world.now_ms += 500  # the pause is over, and the timer has not come by
    world.client(b"p").send(publish(b"u", b"first"))
    assert slow.bodies() == [b"first"]
    pass_time(world, slow, 250)
    pass_time(world, slow, 1_000)
    assert slow.bodies() == numbered(5, 10)
