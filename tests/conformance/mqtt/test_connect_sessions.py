"""Section 3.1, CONNECT: sessions, wills, and what a client of MQTT 5 wants to be sent."""

from __future__ import annotations

from tests.conformance.mqtt.clauses import keeps
from tests.conformance.mqtt.sides import P
from tests.support import mqtt

WILL = (b"gone", b"w", 0, False)


@keeps(v3="3.1.2-4", v5="3.1.2-5 3.1.2-6 3.1.2-23")
def test_session_is_begun_stored_and_resumed(side):
    peer = side.dial()
    assert side.answer(peer, side.connect(stays=True)).ack_flags == 0  # there was none
    side.said(peer.send(side.subscribe(1, (b"t", 1))))
    peer.vanish()
    side.enter(b"p").send(side.publish(b"t", b"kept", qos=1, packet_id=1))
    said = side.said(side.dial().send(side.connect(stays=True)))
    assert (said[0].ack_flags, [one.body for one in said[1:]]) == (1, [b"kept"])


@keeps(v3="3.1.2-5")
def test_messages_wait_for_a_client_that_is_away(side):
    side.enter(b"c", (b"t", 2), stays=True).send(mqtt.DISCONNECT)
    side.enter(b"p").send(side.publish(b"t", b"1", qos=1, packet_id=1), side.publish(b"t", b"2", qos=2, packet_id=2))
    side.restart()
    said = side.said(side.dial().send(side.connect(stays=True)), "PUBLISH")
    assert [(one.body, one.qos) for one in said] == [(b"1", 1), (b"2", 2)]


@keeps(v3="3.1.2-6", v5="3.1.2-4")
def test_clean_start_leaves_nothing_of_the_session_before(side):
    side.enter(b"c", (b"t", 1), stays=True).vanish()
    side.enter(b"p").send(side.publish(b"t", b"old", qos=1, packet_id=1))
    peer = side.dial()
    assert [(one.kind, one.ack_flags) for one in side.said(peer.send(side.connect(clean=True)))] == [("CONNACK", 0)]
    side.enter(b"p").send(side.publish(b"t", b"new", qos=1, packet_id=1))
    assert side.said(peer) == []  # its subscription is gone
    peer.vanish()
    said = side.said(side.dial().send(side.connect(stays=True)))
    assert [(one.kind, one.ack_flags) for one in said] == [("CONNACK", 0)]


@keeps(v3="3.1.2-7")
def test_retained_messages_outlive_the_session_of_their_publisher(side):
    side.enter(b"p").send(side.publish(b"t", b"kept", qos=1, packet_id=1, retain=True), mqtt.DISCONNECT)
    side.enter(b"p").send(mqtt.DISCONNECT)
    assert side.bodies(side.enter(b"s").send(side.subscribe(1, (b"t", 0)))) == [b"kept"]


@keeps(v3="3.1.2-8", v5="3.1.2-7 3.1.2-8")
def test_will_is_published_when_the_connection_ends_without_a_disconnect(side):
    watcher = side.enter(b"w", (b"gone", 0))
    side.enter(b"a", will=(b"gone", b"vanished", 0, False)).vanish()
    side.enter(b"b", will=(b"gone", b"broke a rule", 0, False)).send(mqtt.packet(0x36, b"\0\1t\0\1"))
    side.enter(b"c", will=(b"gone", b"taken over", 0, False))
    side.enter(b"c")
    side.enter(b"d", will=(b"gone", b"left", 0, False)).send(mqtt.DISCONNECT)
    assert side.bodies(watcher) == [b"vanished", b"broke a rule", b"taken over"]


@keeps(v5="3.1.2-8")
def test_will_is_published_at_its_delay_or_the_sessions_end(side):
    watcher = side.enter(b"w", (b"gone", 0), keep_alive_s=0)
    delay = [(P.WILL_DELAY, 10)]
    side.enter(b"a", will=WILL, will_items=delay, stays=True).vanish()
    side.pass_time(9)
    assert side.bodies(watcher) == []
    side.pass_time(1)
    assert side.bodies(watcher) == [b"w"]
    side.enter(b"b", will=WILL, will_items=delay, items=[(P.SESSION_EXPIRY, 5)]).vanish()
    side.pass_time(5)
    assert side.bodies(watcher) == [b"w"]


@keeps(v3="3.1.2-10", v5="3.1.2-10")
def test_will_is_gone_once_it_was_published_or_after_a_disconnect(side):
    watcher = side.enter(b"w", (b"gone", 0))
    side.enter(will=WILL, stays=True).vanish()
    side.enter(stays=True).vanish()
    side.restart()
    side.enter(b"d", will=WILL, stays=True).send(mqtt.DISCONNECT)
    side.restart()
    late = side.enter(b"w", (b"gone", 0))
    side.enter(b"d", stays=True).vanish()
    assert side.bodies(watcher) == [b"w"]
    assert side.bodies(late) == []


@keeps(v3="3.1.2-12")
def test_without_a_will_nothing_is_published_at_the_end(side):
    watcher = side.enter(b"w", (b"#", 0))
    side.enter().vanish()
    side.enter(stays=True).vanish()
    assert side.said(watcher) == []


@keeps(v3="3.1.2-16", v5="3.1.2-14")
def test_will_without_the_retain_flag_is_not_retained(side):
    side.enter(will=(b"gone", b"w", 1, False)).vanish()
    assert side.messages(side.enter(b"s").send(side.subscribe(1, (b"gone", 1)))) == []


@keeps(v3="3.1.2-17", v5="3.1.2-15")
def test_will_with_the_retain_flag_is_retained(side):
    side.enter(will=(b"gone", b"w", 1, True)).vanish()
    (message,) = side.messages(side.enter(b"s").send(side.subscribe(1, (b"gone", 1))))
    assert (message.body, message.retain, message.qos) == (b"w", True, 1)


@keeps(v5="3.1.3-9")
def test_will_with_a_delay_is_not_sent_where_its_client_is_back_before(side):
    watcher = side.enter(b"w", (b"gone", 0), keep_alive_s=0)
    side.enter(will=WILL, will_items=[(P.WILL_DELAY, 10)], stays=True).vanish()
    side.pass_time(9)
    side.enter(stays=True, keep_alive_s=0)
    side.pass_time(100)
    assert side.bodies(watcher) == []


@keeps(v5="3.1.3-10")
def test_user_properties_of_a_will_keep_their_order(side):
    watcher = side.enter(b"w", (b"gone", 0))
    pairs = ((b"b", b"1"), (b"a", b"2"), (b"b", b"0"), (b"", b""))
    side.enter(will=WILL, will_items=[(P.USER, pair) for pair in pairs]).vanish()
    (message,) = side.messages(watcher)
    assert message.properties.users == pairs


@keeps(v5="3.1.2-24 3.1.2-25")
def test_no_packet_is_larger_than_the_clients_maximum(side):
    peer = side.enter(b"s", (b"t", 1), items=[(P.PACKET_BYTES_MAX, 40), (P.RECEIVE_MAX, 1)])
    publisher = side.enter(b"p")
    publisher.send(*[side.publish(b"t", b"x" * size, qos=1, packet_id=size) for size in (80, 10, 80, 11)])
    (first,) = side.messages(peer)  # the large one took no place of the window
    assert len(first.body) == 10
    peer.send(mqtt.puback(first.packet_id))
    (second,) = side.messages(peer)
    assert len(second.body) == 11
    peer.send(mqtt.puback(second.packet_id))
    publisher.send(side.publish(b"t", b"y" * 30, qos=1, packet_id=9))
    assert all(len(data) <= 40 for data in peer.take())


@keeps(v5="3.1.2-24")
def test_answer_that_is_larger_than_the_client_takes_is_not_sent(side):
    many = [(b"t/%d" % i, 0) for i in range(60)]
    peer = side.enter(items=[(P.PACKET_BYTES_MAX, 40)]).send(side.subscribe(1, *many))
    side.assert_ends(peer, 0x95)
    peer = side.enter(items=[(P.PACKET_BYTES_MAX, 40)]).send(side.unsubscribe(1, *[name for name, _ in many]))
    side.assert_ends(peer, 0x95)
    for bytes_max, answers in ((4, []), (5, [0x95]), (15, [0x95])):
        peer = side.dial().send(side.connect(items=[(P.PACKET_BYTES_MAX, bytes_max)]))
        assert [one.code for one in side.said(peer)] == answers
        assert peer.is_closed


@keeps(v5="3.1.2-26 3.1.2-27 3.3.2-11")
def test_no_topic_alias_is_above_the_clients_maximum(side):
    for index, alias_max in enumerate((None, 0, 2)):
        items = [] if alias_max is None else [(P.TOPIC_ALIAS_MAX, alias_max)]
        subscriber = side.enter(b"s%d" % index, (b"long/topic/#", 0), items=items)
        publisher = side.enter(b"p")
        for i in range(40):
            publisher.send(side.publish(b"long/topic/name/%d" % (i % 4), b"%d" % i))
        found = side.messages(subscriber)
        assert len(found) == 40
        for message in found:
            alias = message.number(P.TOPIC_ALIAS, 0)
            assert alias <= (alias_max or 0)
            assert message.topic or alias


@keeps(v5="3.1.2-28")
def test_response_information_is_for_those_who_ask(side):
    side.open(response_prefix="answers")
    for items, is_given in (([], False), ([(P.REQUEST_RESPONSE, 0)], False), ([(P.REQUEST_RESPONSE, 1)], True)):
        given = side.answer(side.dial(), side.connect(items=items)).text(P.RESPONSE_INFORMATION)
        assert (given is not None) == is_given
    small = [(P.REQUEST_RESPONSE, 1), (P.PACKET_BYTES_MAX, 20)]  # no room for it: the client does without
    assert side.answer(side.dial(), side.connect(items=small)).text(P.RESPONSE_INFORMATION) is None


@keeps(v5="3.1.2-29")
def test_client_that_wants_no_problem_information_gets_none_in_acknowledgements(side):
    side.open_for(u={"may_publish": False, "may_subscribe": False})
    peer = side.enter(items=[(P.REQUEST_PROBLEM, 0)], user=b"u", password=b"p")
    peer.send(
        side.publish(b"t", qos=1, packet_id=1),
        side.publish(b"t", qos=2, packet_id=2),
        mqtt.pubrel(99),
        mqtt.pubrec(99),
        side.subscribe(3, (b"t", 0)),
        side.unsubscribe(4, b"t"),
    )
    said = side.said(peer)
    assert {one.kind for one in said} == {"PUBACK", "PUBREC", "PUBREL", "PUBCOMP", "SUBACK", "UNSUBACK"}
    assert all(one.text(P.REASON) is None and not one.properties.users for one in said)
