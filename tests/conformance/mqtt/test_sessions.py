"""Sections 4.1 to 4.6: sessions, transports, the three qualities of service, sending again, order."""

from __future__ import annotations

import pytest

from tests.conformance.mqtt.clauses import keeps
from tests.conformance.mqtt.sides import P
from tests.support import mqtt


def ack(first, packet_id, code):
    """Return an acknowledgement with a code, of MQTT 5."""
    return mqtt.packet(first, packet_id.to_bytes(2, "big") + bytes((code,)))


def come_back(side, client_id=b"s"):
    """Return the client on a new connection, and what it is sent at once."""
    peer = side.dial().send(side.connect(client_id, stays=True))
    return peer, side.said(peer)[1:]


# Sessions


@keeps(v3="4.1.0-1 4.1.0-2", v5="4.1.0-1")
def test_state_of_a_session_is_kept_while_its_connection_is_open(side):
    for stays in (False, True):
        peer = side.enter(b"s", (b"t", 1), stays=stays)
        side.enter(b"p").send(side.publish(b"t", b"1", qos=1, packet_id=1))
        (message,) = side.messages(peer)
        for _ in range(3):
            side.pass_time(50)
            peer.send(mqtt.PINGREQ)
        side.pass_time(50)  # for a session without an expiry, or with one that is over since
        peer.send(mqtt.puback(message.packet_id))
        side.enter(b"p").send(side.publish(b"t", b"2", qos=1, packet_id=1))
        assert side.bodies(peer) == [b"2"]


@keeps(v5="4.1.0-2")
def test_state_is_discarded_when_the_expiry_has_passed(side):
    for kept_s, present in ((99, 1), (101, 0)):
        side.enter(b"s", (b"t", 1), items=[(P.SESSION_EXPIRY, 100)]).vanish()
        side.pass_time(kept_s)
        connack = side.answer(side.dial(), side.connect(b"s", clean=False))
        assert connack.ack_flags == present
        side.enter(b"s").vanish()
    side.enter(b"s", (b"t", 1)).vanish()  # no expiry: with the connection
    assert side.answer(side.dial(), side.connect(b"s", clean=False)).ack_flags == 0


@keeps(v3="7.1.1-1", v5="4.2.0-1")
def test_there_is_a_transport_that_is_ordered_and_loses_nothing(side):
    """A stream of bytes is one, however it is cut: each packet comes once, in its order."""
    peer = side.enter(b"s", (b"t", 1))
    data = b"".join(side.publish(b"t", b"%d" % i * 50, qos=1, packet_id=i + 1) for i in range(40))
    publisher = side.enter(b"p")
    for at in range(0, len(data), 7):
        publisher.send(data[at : at + 7])
    assert side.bodies(peer) == [b"%d" % i * 50 for i in range(40)]
    assert [one.packet_id for one in side.said(publisher)] == list(range(1, 41))


# QoS 0


@keeps(v3="4.3.1-1", v5="4.3.1-1")
def test_qos_0_is_sent_with_qos_0_and_without_dup(side):
    peer = side.enter(b"s", (b"t", 2))
    side.enter(b"p").send(side.publish(b"t"))
    assert [one.flags for one in side.messages(peer)] == [0]


# QoS 1


@keeps(v3="4.3.2-1", v5="4.3.2-1 4.3.2-2 4.3.2-3")
def test_qos_1_is_on_its_way_until_the_puback(side):
    peer = side.enter(b"s", (b"t", 1), stays=True)
    publisher = side.enter(b"p").send(*[side.publish(b"t", b"%d" % i, qos=1, packet_id=i + 1) for i in range(3)])
    first = side.messages(peer)
    assert [(one.qos, one.dup) for one in first] == [(1, False)] * 3
    used = {one.packet_id for one in first}
    assert len(used - {0}) == 3
    peer.send(mqtt.puback(first[0].packet_id))
    publisher.send(side.publish(b"t", b"3", qos=1, packet_id=9))
    (new,) = side.messages(peer)
    assert new.packet_id not in used - {first[0].packet_id}
    peer.vanish()
    peer, again = come_back(side)
    unacknowledged = [*first[1:], new]
    assert [(one.packet_id, one.body, one.dup) for one in again] == [
        (one.packet_id, one.body, True) for one in unacknowledged
    ]
    peer.send(*[mqtt.puback(one.packet_id) for one in again])
    peer.vanish()
    assert come_back(side)[1] == []


@keeps(v3="4.3.2-2", v5="4.3.2-4 4.3.2-5")
def test_after_the_puback_the_identifier_stands_for_another_message(side):
    watcher = side.enter(b"w", (b"t", 1))
    peer = side.enter()
    for body, dup in ((b"1", False), (b"2", True), (b"2", True)):
        said = side.one(peer.send(side.publish(b"t", body, qos=1, packet_id=7, dup=dup)))
        assert (said.kind, said.packet_id, said.code) == ("PUBACK", 7, 0)
    assert side.bodies(watcher) == [b"1", b"2", b"2"]


# QoS 2, sending


@keeps(v3="4.3.3-1", v5="4.3.3-1 4.3.3-2 4.3.3-3 4.3.3-4 4.3.3-5 4.3.3-6")
def test_qos_2_goes_step_by_step_also_over_reconnects(side):
    peer = side.enter(b"s", (b"t", 2), stays=True)
    side.enter(b"p").send(*[side.publish(b"t", b"%d" % i, qos=2, packet_id=i + 1) for i in range(2)])
    one, other = side.messages(peer)
    assert [(each.qos, each.dup) for each in (one, other)] == [(2, False)] * 2
    assert len({one.packet_id, other.packet_id} - {0}) == 2
    peer.vanish()
    peer, again = come_back(side)
    assert [(each.kind, each.packet_id, each.dup) for each in again] == [
        ("PUBLISH", one.packet_id, True),
        ("PUBLISH", other.packet_id, True),
    ]
    for _ in range(2):
        said = side.one(peer.send(mqtt.pubrec(one.packet_id)))
        assert (said.kind, said.packet_id, said.code) == ("PUBREL", one.packet_id, 0)
        peer.vanish()
        peer, again = come_back(side)  # the one that was received is not published again
        assert sorted((each.kind, each.packet_id) for each in again) == [
            ("PUBLISH", other.packet_id),
            ("PUBREL", one.packet_id),
        ]
    peer.send(mqtt.pubcomp(one.packet_id))
    assert side.one(peer.send(mqtt.pubrec(other.packet_id))).kind == "PUBREL"
    peer.send(mqtt.pubcomp(other.packet_id))
    peer.vanish()
    assert come_back(side)[1] == []


@keeps(v5="4.3.3-7")
def test_publish_that_was_sent_does_not_expire(side):
    peer = side.enter(b"s", (b"t", 2), stays=True, keep_alive_s=0)
    side.enter(b"p").send(
        *[side.publish(b"t", b"%d" % i, items=[(P.MESSAGE_EXPIRY, 5)], qos=2, packet_id=i + 1) for i in range(2)]
    )
    one, other = side.messages(peer)
    side.pass_time(60)
    assert side.one(peer.send(mqtt.pubrec(one.packet_id))).kind == "PUBREL"
    peer.vanish()
    _, again = come_back(side)
    assert sorted((each.kind, each.packet_id) for each in again) == [
        ("PUBLISH", other.packet_id),
        ("PUBREL", one.packet_id),
    ]


# QoS 2, receiving


@keeps(v3="4.3.3-2", v5="4.3.3-8 4.3.3-10 4.3.3-11 4.3.3-12")
def test_qos_2_is_delivered_once_until_it_is_released(side):
    watcher = side.enter(b"w", (b"t", 2))
    peer = side.enter(stays=True)
    for dup in (False, True, False):
        said = side.one(peer.send(side.publish(b"t", b"1", qos=2, packet_id=7, dup=dup)))
        assert (said.kind, said.packet_id, said.code) == ("PUBREC", 7, 0)
    peer.vanish()
    peer = side.enter(stays=True)
    assert side.one(peer.send(side.publish(b"t", b"1", qos=2, packet_id=7, dup=True))).kind == "PUBREC"
    assert side.bodies(watcher) == [b"1"]
    said = side.one(peer.send(mqtt.pubrel(7)))
    assert (said.kind, said.packet_id, said.code) == ("PUBCOMP", 7, 0)
    assert side.one(peer.send(side.publish(b"t", b"2", qos=2, packet_id=7))).kind == "PUBREC"
    assert side.bodies(watcher) == [b"2"]


@keeps(v5="4.3.3-9")
def test_after_a_pubrec_that_says_no_the_identifier_stands_for_another_message(side):
    side.open_for(u={}, denied={"may_publish": False})
    watcher = side.enter(b"w", (b"t", 2), user=b"u", password=b"p")
    peer = side.enter(b"d", user=b"denied", password=b"p")
    for _ in range(2):  # as new each time, not as one that was taken
        said = side.one(peer.send(side.publish(b"t", qos=2, packet_id=7)))
        assert (said.kind, said.packet_id, said.code) == ("PUBREC", 7, 0x87)
    assert side.one(peer.send(mqtt.pubrel(7))).code == 0x92
    assert side.messages(watcher) == []


@keeps(v5="4.3.3-13")
def test_exchange_is_brought_to_its_end_where_the_message_expired(side):
    side.enter(b"s", (b"t", 0), keep_alive_s=0)
    peer = side.enter(keep_alive_s=0)
    item = [(P.MESSAGE_EXPIRY, 1)]
    assert side.one(peer.send(side.publish(b"t", items=item, qos=2, packet_id=7))).kind == "PUBREC"
    side.pass_time(60)
    said = side.one(peer.send(side.publish(b"t", items=item, qos=2, packet_id=7, dup=True)))
    assert (said.kind, said.code) == ("PUBREC", 0)
    said = side.one(peer.send(mqtt.pubrel(7)))
    assert (said.kind, said.packet_id, said.code) == ("PUBCOMP", 7, 0)


# Sending again, ownership, order


@keeps(v3="4.4.0-1", v5="4.4.0-1")
def test_what_was_not_acknowledged_is_sent_again_on_a_reconnect_and_only_then(side):
    peer = side.enter(b"s", (b"t", 2), stays=True, keep_alive_s=0)
    side.enter(b"p").send(*[side.publish(b"t", b"%d" % i, qos=1 + i % 2, packet_id=i + 1) for i in range(4)])
    first = side.messages(peer)
    peer.send(mqtt.pubrec(first[1].packet_id))
    side.said(peer)
    side.pass_time(600)
    peer.send(mqtt.PINGREQ)
    assert [one.kind for one in side.said(peer)] == ["PINGRESP"]
    peer.vanish()
    _, again = come_back(side)
    assert sorted((one.kind, one.packet_id) for one in again) == sorted(
        ("PUBREL" if one is first[1] else "PUBLISH", one.packet_id) for one in first
    )


@pytest.mark.parametrize("code", [0x80, 0x97])
@pytest.mark.parametrize(("qos", "first"), [(1, 0x40), (2, 0x50)])
@keeps(v5="4.4.0-2")
def test_what_a_client_says_no_to_is_not_sent_again(side, qos, first, code):
    peer = side.enter(b"s", (b"t", 2), stays=True)
    side.enter(b"p").send(side.publish(b"t", qos=qos, packet_id=1))
    (message,) = side.messages(peer)
    peer.send(ack(first, message.packet_id, code))
    assert side.said(peer) == []
    peer.vanish()
    assert come_back(side)[1] == []


@keeps(v3="4.5.0-1", v5="4.5.0-1")
def test_message_is_added_to_each_session_that_matches(side):
    names = [b"s%d" % i for i in range(6)]
    filters = [b"a/b", b"a/+", b"#", b"a/#", b"+/b", b"x"]
    for name, topic_filter in zip(names, filters, strict=True):
        side.enter(name, (topic_filter, 1), stays=True).vanish()
    publisher = side.enter(b"p").send(side.publish(b"a/b", qos=1, packet_id=1))
    assert side.one(publisher).kind == "PUBACK"
    side.restart()
    bodies = [[one.body for one in come_back(side, name)[1]] for name in names]
    assert bodies == [[b"x"]] * 5 + [[]]


@keeps(v3="4.6.0-1", v5="4.6.0-1")
def test_what_is_sent_again_comes_in_its_order(side):
    peer = side.enter(b"s", (b"t", 2), (b"u", 2), stays=True)
    side.enter(b"p").send(
        *[side.publish(b"tu"[i % 2 : i % 2 + 1], b"%d" % i, qos=1 + i % 2, packet_id=i + 1) for i in range(8)]
    )
    first = [one.packet_id for one in side.messages(peer)]
    for _ in range(2):
        peer.vanish()
        peer, again = come_back(side)
        assert [one.packet_id for one in again] == first


@keeps(v3="4.6.0-2 4.6.0-3", v5="4.6.0-2 4.6.0-3")
def test_acknowledgements_are_in_the_order_of_their_publishes(side):
    numbers = [5, 3, 900, 1, 77, 2]
    for qos, kind in ((1, "PUBACK"), (2, "PUBREC")):
        peer = side.enter()
        peer.send(*[side.publish(b"t/%d" % n, qos=qos, packet_id=n) for n in numbers[:4]])
        peer.send(*[side.publish(b"t/%d" % n, qos=qos, packet_id=n) for n in numbers[4:]])
        assert [(one.kind, one.packet_id) for one in side.said(peer)] == [(kind, n) for n in numbers]


@keeps(v3="4.6.0-4", v5="4.6.0-4")
def test_pubrels_are_in_the_order_of_their_pubrecs(side):
    peer = side.enter(b"s", (b"t", 2))
    side.enter(b"p").send(*[side.publish(b"t", qos=2, packet_id=i + 1) for i in range(6)])
    numbers = [one.packet_id for one in side.messages(peer)]
    mixed = numbers[3:] + numbers[:3]
    peer.send(*[mqtt.pubrec(n) for n in mixed])
    assert [(one.kind, one.packet_id) for one in side.said(peer)] == [("PUBREL", n) for n in mixed]


@keeps(v3="4.6.0-5 4.6.0-6", v5="4.6.0-5 4.6.0-6")
def test_messages_of_a_client_reach_each_subscriber_in_their_order(side):
    live = side.enter(b"live", (b"t", 2))
    side.enter(b"away", (b"t", 2), stays=True).vanish()
    publisher = side.enter(b"p")
    for start in range(0, 60, 20):
        for qos in range(3):
            publisher.send(
                *[
                    side.publish(b"t", b"%d-%d" % (qos, i), qos=qos, packet_id=1 + i + 100 * qos)
                    for i in range(start, start + 20)
                ]
            )
    _, got = come_back(side, b"away")
    for messages in (side.messages(live), got):
        for qos in range(3):
            assert [one.body for one in messages if one.qos == qos] == [b"%d-%d" % (qos, i) for i in range(60)]
