from __future__ import annotations

import pytest

from core.lmq.queue_name import mqtt_queue_name
from tests.support import mqtt
from tests.support.logins import quick_hash
from tests.support.walks import all_of, take_steps


def test_connections_say_who_came_in_and_since_when(make_world):
    world = make_world(auth={"users": {"ann": {"password_hash": quick_hash("pw")}}})
    stranger = world.dial()
    client = world.connect(b"dev-7", user=b"ann", password=b"pw")
    world.turn()
    entries = all_of(world.door.inventory().connections())
    assert {(entry.conn_id, entry.user, entry.client) for entry in entries} == {
        (client.transport.conn_id, "ann", "dev-7"),
        (stranger.transport.conn_id, None, ""),
    }
    client.vanish()
    stranger.vanish()
    assert all_of(world.door.inventory().connections()) == []


def test_sessions_say_what_they_have_and_whether_their_client_is_there(world):
    publisher = world.client(b"p")
    there = world.client(b"there", (b"a", 1), (b"b", 0))
    gone = world.client(b"gone", (b"a", 1), clean=False)
    gone.vanish()
    publisher.send(mqtt.publish(b"a", b"x", qos=1, packet_id=1), mqtt.publish(b"a", b"y", qos=1, packet_id=2))
    found = {entry.client: entry for entry in all_of(world.door.inventory().sessions())}
    assert set(found) == {"p", "there", "gone"}
    assert (found["there"].conn_id, found["there"].subscriptions) == (there.transport.conn_id, 2)
    assert (found["there"].inflight, found["there"].is_persistent) == (2, False)
    assert {name: entry.is_connected for name, entry in found.items()} == {"p": True, "there": True, "gone": False}
    assert (found["gone"].conn_id, found["gone"].inflight, found["gone"].is_persistent) == (0, 0, True)
    assert {name: world.door.inventory().find_session(name) for name in found} == found
    assert world.door.inventory().find_session("nobody") is None


def test_queues_of_filters_say_how_far_they_are_and_how_many_read_them(world):
    world.client(b"s1", (b"a/+", 0), (b"#", 0))
    world.client(b"s2", (b"a/+", 0))
    world.client(b"p").send(mqtt.publish(b"a/b", b"x"), mqtt.publish(b"c", b"y"))
    found = {entry.name: entry for entry in all_of(world.door.inventory().queues())}
    assert {name: (entry.max_offset, entry.readers) for name, entry in found.items()} == {"a/+": (1, 2), "#": (2, 1)}
    assert found["a/+"].light_queue == "%LMQ%mqtt%a%|p"
    assert found["a/+"].ready is None


@pytest.mark.parametrize("kind", ["connections", "sessions", "queues"])
def test_walk_goes_on_while_sessions_come_and_go(world, kind):
    peers = [world.client(b"c%d" % i, (b"f/%d" % i, 0)) for i in range(20)]
    walk = getattr(world.door.inventory(), kind)()
    first = take_steps(walk, 5)
    assert len(first) == 5
    for peer in peers:
        peer.vanish()
    world.client(b"late", (b"late", 0))
    rest = all_of(walk)
    assert len(rest) == (15 if kind == "queues" else 0)


def test_long_walk_over_queues_of_others_gives_the_loop_its_turns(world):
    for i in range(1_000):
        world.broker.intern_queue(b"T/%d" % i)
    steps = list(world.door.inventory().queues())
    assert all(step is None for step in steps)
    assert len(steps) >= 1_000 // 256


def fates_of(world, light_queue, offset):
    return {
        (fate.kind, fate.reader): fate.stage.value for fate in all_of(world.door.inventory().fates(light_queue, offset))
    }


def test_of_a_message_each_session_and_group_says_how_far_it_is(world):
    away = world.client(b"away", (b"a", 1), clean=False)
    away.vanish()
    slow = world.client(b"slow", (b"a", 1))
    world.client(b"quick", (b"a", 0))
    world.client(b"member", (b"$share/g/a", 1))
    world.client(b"other", (b"b", 1))
    world.client(b"p").send(mqtt.publish(b"a", b"x", qos=1, packet_id=1), mqtt.publish(b"a", b"y", qos=1, packet_id=2))
    first = {
        ("session", "away"): "waits",
        ("session", "slow"): "taken",
        ("session", "quick"): "done",
        ("group", "mqtt:g"): "taken",
    }
    assert fates_of(world, b"%LMQ%mqtt%a", 0) == first
    slow.send(mqtt.puback(1))
    assert fates_of(world, b"%LMQ%mqtt%a", 0) == {**first, ("session", "slow"): "done"}
    assert fates_of(world, b"%LMQ%mqtt%a", 1) == first
    assert fates_of(world, b"%LMQ%mqtt%none", 0) == {}


def test_subscriptions_say_what_waits_and_what_is_in_flight(world):
    world.client(b"away", (b"a", 1), clean=False).vanish()
    world.client(b"there", (b"a", 1), (b"$share/g/a", 1))
    world.client(b"p").send(mqtt.publish(b"a", b"x", qos=1, packet_id=1), mqtt.publish(b"a", b"y", qos=1, packet_id=2))
    inventory = world.door.inventory()
    found = {
        (client, entry.topic_filter): (entry.max_offset - entry.next_offset, entry.inflight)
        for client in ("away", "there")
        for entry in inventory.subscriptions(client)
    }
    assert found == {("away", "a"): (2, 0), ("there", "a"): (0, 2), ("there", "$share/g/a"): (0, 2)}
    assert inventory.subscriptions("nobody") is None


def test_a_figure_of_many_subscriptions_is_told_at_once_as_one_by_one(world):
    world.client(b"slow", (b"a", 0), (b"$share/g/a", 1), (b"b", 1))
    world.client(b"other", (b"a", 1))
    world.client(b"p").send(mqtt.publish(b"a", b"x", qos=1, packet_id=1), mqtt.publish(b"b", b"y", qos=1, packet_id=2))
    inventory = world.door.inventory()
    found = [one for one in inventory.filters() if one is not None]
    entries = [inventory.describe_subscription(*one) for one in found]
    some = [None, *found, (b"slow", b"gone"), (b"gone", b"a")]
    assert inventory.tell_subscriptions("qos", some) == [0, *(entry.qos for entry in entries), 0, 0]
    waiting = [entry.max_offset - entry.next_offset for entry in entries]
    assert inventory.tell_subscriptions("waiting", some) == [0, *waiting, 0, 0]


def test_figures_of_sessions_that_are_not_loaded_are_told_without_loading_them(world):
    away = world.client(b"away", (b"a", 1), (b"a/#", 2), (b"b", 0), clean=False)
    away.vanish()
    world.client(b"p").send(mqtt.publish(b"a", b"x", qos=1, packet_id=1))
    world.close()
    world.open()
    world.client(b"there", (b"a", 1))
    inventory, sessions = world.door.inventory(), world.door.sessions
    found = [(b"away", b"a"), (b"away", b"b"), (b"there", b"a"), None, (b"away", b"a/#"), (b"away", b"gone")]
    resting = sessions.find_as_is(b"away")
    assert inventory.tell_subscriptions("waiting", found) == [1, 0, 0, 0, 1, 0]
    assert inventory.tell_subscriptions("qos", found) == [1, 0, 1, 0, 2, 0]
    assert sessions.find_as_is(b"away") is resting


def test_a_long_filter_that_nobody_uses_has_its_name_after_a_restart_while_it_has_messages(world):
    used, empty = [b"plant/" + name * 300 + b"/#" for name in (b"a", b"b")]
    world.client(b"p", (used, 1), (empty, 1)).send(mqtt.publish(used[:-1] + b"1", b"x", qos=1, packet_id=1)).vanish()
    names = []
    for _ in range(2):
        world.close()
        world.open()
        names.append({entry.name for entry in all_of(world.door.inventory().queues())})
        assert [*dict(world.broker.table("long_names").items())] == [mqtt_queue_name(used)]
    assert [used.decode() in each for each in names] == [True, True]


def backlogs_of(world):
    return dict(all_of(world.door.inventory().backlogs()))


def test_a_session_that_is_away_says_how_many_messages_wait_for_it_also_after_a_start(world):
    away = world.client(b"away", (b"a/#", 1), (b"b", 2), (b"c", 0), clean=False)
    world.client(b"shares", (b"$share/g/a/#", 1), clean=False)
    away.vanish()
    world.client(b"there", (b"a/#", 1))
    publisher = world.client(b"p")
    for number, topic in enumerate((b"a/1", b"a/2", b"b", b"c"), 1):
        publisher.send(mqtt.publish(topic, b"x", qos=1, packet_id=number))
    assert backlogs_of(world) == {"away": 3}
    world.close()
    world.open()
    assert backlogs_of(world) == {"away": 3}
    world.client(b"away", clean=False)
    assert backlogs_of(world) == {}


def test_message_is_told_by_what_its_subscription_was_when_it_was_sent(make_world):
    world = make_world()
    peer = world.client(b"one", (b"a", 0), clean=False)
    publisher = world.client(b"p")
    publisher.send(mqtt.publish(b"a", b"0"))
    peer.send(mqtt.subscribe(1, (b"a", 1)))
    publisher.send(mqtt.publish(b"a", b"1", qos=1, packet_id=1))
    peer.send(mqtt.puback(1))
    peer.send(mqtt.subscribe(2, (b"a", 0)))
    publisher.send(mqtt.publish(b"a", b"2", qos=1, packet_id=1))

    def ends():
        found = [all_of(world.door.inventory().fates(mqtt_queue_name(b"a"), offset))[0] for offset in range(3)]
        return [(fate.done_as, fate.note) for fate in found]

    expected = [("sent", "filter a at QoS 0"), ("acknowledged", "filter a at QoS 1"), ("sent", "filter a at QoS 0")]
    assert ends() == expected
    world.close()
    world.open()
    assert ends() == expected


def group_fate(world):
    """Return how far the one group is with the first message of its queue, and who has or had it."""
    fates = all_of(world.door.inventory().fates(mqtt_queue_name(b"t"), 0))
    return next((fate.stage.value, fate.holder) for fate in fates if fate.kind == "group")


def give_at_qos_2(world):
    """Have a message of a shared filter sent to a member at QoS 2; return the member."""
    member = world.client(b"member", (b"$share/g/t", 2), clean=False)
    world.client(b"p").send(mqtt.publish(b"t", b"x", qos=2, packet_id=1), mqtt.pubrel(1))
    return member


def test_message_of_a_group_at_qos_2_is_with_its_session_until_that_acknowledged_it(make_world):
    world = make_world()
    give_at_qos_2(world).vanish()
    assert group_fate(world) == ("taken", "member")
    world.close()
    world.open()
    assert group_fate(world) == ("taken", "member")
    again = world.client(b"member", clean=False)
    again.send(mqtt.pubrec(1), mqtt.pubcomp(1))
    assert group_fate(world) == ("done", "member")
    world.close()
    world.open()
    assert group_fate(world) == ("done", "member")
    assert world.broker.pop.endings.find(mqtt_queue_name(b"t"), b"mqtt:g", 0) is None


def test_message_of_a_group_at_qos_2_ends_with_its_session(make_world):
    world = make_world()
    world.client(b"other", (b"$share/g/t", 1), clean=False).vanish()
    give_at_qos_2(world).vanish()
    world.connect(b"member", clean=True)
    for _ in range(2):
        assert group_fate(world)[0] == "done"
        assert world.broker.pop.endings.find(mqtt_queue_name(b"t"), b"mqtt:g", 0).reason == "session_ended"
        world.close()
        world.open()


def test_of_a_session_that_ends_with_the_process_it_is_told_that_it_was_given_the_message(make_world):
    world = make_world()
    member = world.client(b"member", (b"$share/g/t", 2))
    world.client(b"p").send(mqtt.publish(b"t", b"x", qos=2, packet_id=1), mqtt.pubrel(1))
    assert group_fate(world) == ("taken", "member")
    member.send(mqtt.pubrec(1), mqtt.pubcomp(1))
    assert group_fate(world)[0] == "done"
    assert world.broker.pop.endings.find(mqtt_queue_name(b"t"), b"mqtt:g", 0).reason == "handed_over"


def test_member_that_acknowledged_a_message_is_known_after_a_kill_too(make_world):
    world = make_world()
    for name in (b"one", b"two"):
        world.client(name, (b"$share/g/t", 1), clean=False).vanish()
    for name in (b"one", b"two"):
        world.client(b"p").send(mqtt.publish(b"t", name, qos=1, packet_id=1))
        peer = world.connect(name, clean=False)
        peer.send(mqtt.puback(1))
        peer.vanish()
    for _ in range(2):
        fates = [all_of(world.door.inventory().fates(mqtt_queue_name(b"t"), offset))[-1] for offset in range(2)]
        assert [(fate.stage.value, fate.holder, fate.note) for fate in fates] == [
            ("done", "one", ""),
            ("done", "two", ""),
        ]
        world.close()
        world.open()
