"""A message at QoS 2 belongs to the session that it was sent to: MQTT-4.8.2-4, MQTT-4.8.2-5."""

from __future__ import annotations

import pytest

from core.lmq.queue_name import mqtt_queue_name
from core.pop.changes import CHANGE_BYTES
from gateway.mqtt.shared_group import SharedGroup
from tests.support import mqtt
from tests.support.mqtt import pubcomp, pubrec, pubrel
from tests.support.mqtt_5 import enter, got
from tests.support.mqtt_groups import FILTER, numbered, send


def finish(peer, deliveries):
    """Go through the rest of QoS 2 for what a member was sent."""
    for one in deliveries:
        assert peer.send(pubrec(one.packet_id)).take() == [pubrel(one.packet_id)]
        assert peer.send(pubcomp(one.packet_id)).take() == []


def test_message_at_qos_2_is_given_to_its_member_only(world):  # MQTT-4.8.2-4, MQTT-4.8.2-5
    first = world.client(b"a", (FILTER, 2), clean=False)
    send(world, *numbered(3), qos=2)
    given = first.take_deliveries()
    first.send(pubrec(given[0].packet_id)).take()
    second = world.client(b"b", (FILTER, 2))
    first.vanish()
    assert second.take_deliveries() == []
    send(world, b"new", qos=2)
    assert [one.body for one in second.take_deliveries()] == [b"new"]
    again = world.connect(b"a", clean=False)
    packets = again.take()
    assert pubrel(given[0].packet_id) in packets
    deliveries = [mqtt.parse_publish(one) for one in packets if one[0] >> 4 == 3]
    assert [(one.body, one.dup, one.packet_id) for one in deliveries] == [
        (one.body, True, one.packet_id) for one in given[1:]
    ]
    again.send(pubcomp(given[0].packet_id))
    finish(again, deliveries)
    again.vanish()
    assert world.connect(b"a", clean=False).take_deliveries() == []


def test_message_at_qos_2_ends_with_the_session_it_was_sent_to(world):  # MQTT-4.8.2-5
    first = world.client(b"a", (FILTER, 2))
    second = world.client(b"b", (FILTER, 2))
    send(world, *numbered(4), qos=2)
    mine = second.take_deliveries()
    first.vanish()
    assert second.take_deliveries() == []
    finish(second, mine)
    send(world, b"last", qos=2)
    assert [one.body for one in second.take_deliveries()] == [b"last"]


def test_ends_of_what_a_session_is_owed_are_noted_in_runs_and_not_one_by_one(make_world):
    world = make_world()
    world.client(b"b", (FILTER, 2), clean=False).vanish()
    first = world.client(b"a", (FILTER, 2), clean=False)
    send(world, *numbered(100), qos=2)
    assert len(first.take_deliveries()) == 100
    journal = world.broker.engine.journal("pop")
    before = journal.bytes_used
    first.vanish()
    world.connect(b"a", clean=True)
    assert journal.bytes_used - before < 10 * CHANGE_BYTES
    for _ in range(2):
        found = [world.broker.pop.endings.find(mqtt_queue_name(b"t/#"), b"mqtt:g", offset) for offset in range(101)]
        assert [one and one.reason for one in found] == ["session_ended"] * 100 + [None]
        world.close()
        world.open()


def test_member_that_refuses_a_message_is_the_last_to_see_it(world):  # MQTT-4.8.2-6
    first = enter(world, b"a", filters=[(FILTER, 2)])
    send(world, *numbered(2), qos=2)
    for one in got(first):
        first.send(b"\x50\x04" + one.packet_id.to_bytes(2, "big") + b"\x97\0")
    second = enter(world, b"b", filters=[(FILTER, 2)])
    first.vanish()
    assert got(second) == []


def test_messages_at_qos_1_and_2_of_one_member_go_their_own_ways(world):
    first = world.client(b"a", (FILTER, 2), clean=False)
    send(world, b"one", qos=1)
    send(world, b"two", qos=2)
    assert [one.body for one in first.take_deliveries()] == [b"one", b"two"]
    second = world.client(b"b", (FILTER, 2))
    first.vanish()
    assert [one.body for one in second.take_deliveries()] == [b"one"]
    assert [one.body for one in world.connect(b"a", clean=False).take_deliveries()] == [b"two"]


@pytest.mark.parametrize("how_far", [0, 1, 2])
def test_message_at_qos_2_is_given_once_also_over_a_kill(world, how_far):
    first = world.client(b"a", (FILTER, 2), clean=False)
    send(world, *numbered(2), qos=2)
    (one, other) = first.take_deliveries()
    if how_far:
        first.send(pubrec(one.packet_id))
    if how_far > 1:
        first.send(pubcomp(one.packet_id))
    world.close()
    world.open()
    second = world.client(b"b", (FILTER, 2))
    send(world, b"new", qos=2)
    assert [each.body for each in second.take_deliveries()] == [b"new"]
    again = world.connect(b"a", clean=False)
    packets = again.take()
    bodies = [mqtt.parse_publish(each).body for each in packets if each[0] >> 4 == 3]
    assert bodies == [[b"0", b"1"], [b"1"], [b"1"]][how_far]
    assert (pubrel(one.packet_id) in packets) is (how_far == 1)
    again.send(pubcomp(one.packet_id)) if how_far == 1 else None
    assert other.packet_id


def test_kill_between_two_journals_gives_nothing_twice(world, monkeypatch):
    first = world.client(b"a", (FILTER, 2), clean=False)
    monkeypatch.setattr(SharedGroup, "_finish", lambda _group, _offsets: None)  # the kill comes before the group knows
    send(world, *numbered(3), qos=2)
    assert len(first.take_deliveries()) == 3
    monkeypatch.undo()
    world.close()
    world.open()
    second = world.client(b"b", (FILTER, 2))
    send(world, b"new", qos=2)
    assert [each.body for each in second.take_deliveries()] == [b"new"]
    assert [one.body for one in world.connect(b"a", clean=False).take_deliveries()] == numbered(3)


def test_what_is_on_its_way_at_qos_2_is_kept_from_retention(world):
    def held():
        return [position for _, position in world.door.sessions.held_positions()]

    first = world.client(b"a", (FILTER, 2), clean=False)
    assert held() == []
    send(world, *numbered(5), qos=2)
    deliveries = first.take_deliveries()
    assert held() == [0]
    finish(first, deliveries[:2])
    assert held() == [2]
    finish(first, deliveries[2:])
    assert held() == []
