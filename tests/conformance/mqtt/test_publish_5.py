"""Section 3.3 of MQTT 5: properties, topic aliases, subscription identifiers, how much is on its way."""

from __future__ import annotations

from tests.conformance.mqtt.clauses import keeps
from tests.conformance.mqtt.sides import P
from tests.support import mqtt


def delivered(side, *items):
    """Return what two subscribers, one of which was away, get of a message with these properties."""
    side.enter(b"away", (b"t", 1), stays=True).vanish()
    here = side.enter(b"here", (b"t", 1))
    side.enter(b"p").send(side.publish(b"t", items=items, qos=1, packet_id=1))
    (one,) = side.messages(here)
    (other,) = side.messages(side.dial().send(side.connect(b"away", stays=True)))
    assert one.body == other.body == b"x"
    return one, other


@keeps(v5="3.3.2-4")
def test_payload_format_goes_to_each_subscriber_as_it_came(side):
    assert [one.number(P.PAYLOAD_FORMAT) for one in delivered(side, (P.PAYLOAD_FORMAT, 1))] == [1, 1]


@keeps(v5="3.3.2-5")
def test_message_that_expired_before_it_was_sent_is_not_sent(side):
    side.enter(b"s", (b"t", 1), stays=True).vanish()
    publisher = side.enter(b"p", keep_alive_s=0)
    for seconds in (5, 50):
        publisher.send(side.publish(b"t", b"%d" % seconds, items=[(P.MESSAGE_EXPIRY, seconds)], qos=1, packet_id=1))
    side.pass_time(6)
    assert side.bodies(side.dial().send(side.connect(b"s", stays=True))) == [b"50"]


@keeps(v5="3.3.2-6")
def test_expiry_is_told_less_the_time_that_the_message_waited(side):
    now = side.enter(b"n", (b"t", 1))
    side.enter(b"s", (b"t", 1), stays=True).vanish()
    side.enter(b"p").send(side.publish(b"t", items=[(P.MESSAGE_EXPIRY, 50)], qos=1, packet_id=1))
    assert [one.number(P.MESSAGE_EXPIRY) for one in side.messages(now)] == [50]
    side.pass_time(7)
    said = side.messages(side.dial().send(side.connect(b"s", stays=True)))
    assert [one.number(P.MESSAGE_EXPIRY) for one in said] == [43]


@keeps(v5="3.3.2-7")
def test_topic_aliases_end_with_their_connection(side):
    alias = [(P.TOPIC_ALIAS, 1)]
    peer = side.enter(stays=True).send(side.publish(b"t", items=alias))
    peer.vanish()
    side.assert_ends(side.enter(stays=True).send(side.publish(b"", items=alias)), 0x82)


@keeps(v5="3.3.2-8")
def test_topic_alias_0_is_an_error(side):
    side.assert_ends(side.enter().send(side.publish(b"t", items=[(P.TOPIC_ALIAS, 0)])), 0x94)
    peer = side.enter(b"s", (b"t/#", 0), items=[(P.TOPIC_ALIAS_MAX, 5)])
    side.enter(b"p").send(*[side.publish(b"t/%d" % i) for i in range(8)])
    assert 0 not in [one.number(P.TOPIC_ALIAS) for one in side.messages(peer)]


@keeps(v5="3.2.2-17 3.3.2-9 3.3.2-12")
def test_all_topic_aliases_up_to_the_maximum_are_taken(side):
    peer = side.dial()
    alias_max = side.answer(peer, side.connect()).number(P.TOPIC_ALIAS_MAX)
    assert alias_max > 0
    watcher = side.enter(b"w", (b"#", 0))
    for i in range(1, alias_max + 1):
        peer.send(side.publish(b"t/%d" % i, items=[(P.TOPIC_ALIAS, i)]))
    for i in range(1, alias_max + 1):
        peer.send(side.publish(b"", b"%d" % i, items=[(P.TOPIC_ALIAS, i)]))
    said = [(one.topic, one.body) for one in side.messages(watcher)]
    assert said[alias_max:] == [(b"t/%d" % i, b"%d" % i) for i in range(1, alias_max + 1)]
    side.assert_ends(peer.send(side.publish(b"t", items=[(P.TOPIC_ALIAS, alias_max + 1)])), 0x94)


@keeps(v5="3.3.2-13")
def test_response_topic_is_utf_8(side):
    for topic in (b"\xff", b"a\0", b"\xed\xa0\x80"):
        side.assert_ends(side.enter().send(side.publish(b"t", items=[(P.RESPONSE_TOPIC, topic)])), 0x81)


@keeps(v5="3.3.2-14")
def test_response_topic_has_no_wildcards(side):
    watcher = side.enter(b"w", (b"#", 0))
    for topic in (b"a/#", b"+/a"):
        peer = side.enter().send(side.publish(b"t", items=[(P.RESPONSE_TOPIC, topic)]))
        said = side.said(peer)[-1]
        assert (said.kind, said.code >= 0x80, peer.is_closed) == ("DISCONNECT", True, True)
    assert side.messages(watcher) == []


@keeps(v5="3.3.2-15")
def test_response_topic_goes_to_each_subscriber_as_it_came(side):
    topic = "antworten/für/1".encode()
    assert [one.text(P.RESPONSE_TOPIC) for one in delivered(side, (P.RESPONSE_TOPIC, topic))] == [topic] * 2


@keeps(v5="3.3.2-16")
def test_correlation_data_goes_to_each_subscriber_as_it_came(side):
    data = bytes(range(256))
    assert [one.text(P.CORRELATION) for one in delivered(side, (P.CORRELATION, data))] == [data] * 2


@keeps(v5="3.3.2-17 3.3.2-18")
def test_user_properties_go_to_each_subscriber_in_their_order(side):
    pairs = ((b"b", b"1"), (b"a", b"2"), (b"b", b"3"), (b"b", b"1"), (b"", b""), ("ключ".encode(), b"\xe2\x82\xac"))
    for message in delivered(side, *[(P.USER, pair) for pair in pairs]):
        assert message.properties.users == pairs


@keeps(v5="3.3.2-19")
def test_content_type_is_utf_8(side):
    for kind in (b"\xff", b"a\0", b"\xc0\xaf"):
        side.assert_ends(side.enter().send(side.publish(b"t", items=[(P.CONTENT_TYPE, kind)])), 0x81)


@keeps(v5="3.3.2-20")
def test_content_type_goes_to_each_subscriber_as_it_came(side):
    kind = b"text/plain; charset=utf-8"
    assert [one.text(P.CONTENT_TYPE) for one in delivered(side, (P.CONTENT_TYPE, kind))] == [kind] * 2


@keeps(v5="3.3.4-3 3.3.4-4 3.3.4-5")
def test_subscription_identifiers_come_with_the_messages_of_their_subscriptions(side):
    peer = side.enter(b"s")
    peer.send(side.subscribe(1, (b"t", 0), items=[(P.SUBSCRIPTION_ID, 268_435_455)]))
    peer.send(side.subscribe(2, (b"+", 0), items=[(P.SUBSCRIPTION_ID, 1)]))
    peer.send(side.subscribe(3, (b"#", 0)))
    peer.take()
    side.enter(b"p").send(side.publish(b"t"), side.publish(b"u"))
    said = side.messages(peer)
    assert sorted((one.topic, one.number(P.SUBSCRIPTION_ID)) for one in said) == [
        (b"t", -1),
        (b"t", 1),
        (b"t", 268_435_455),
        (b"u", -1),
        (b"u", 1),
    ]


@keeps(v5="3.3.4-6")
def test_client_sends_no_subscription_identifier_in_a_publish(side):
    watcher = side.enter(b"w", (b"t", 0))
    side.assert_ends(side.enter().send(side.publish(b"t", items=[(P.SUBSCRIPTION_ID, 3)])), 0x82)
    assert side.messages(watcher) == []


@keeps(v5="3.3.4-7")
def test_client_has_no_more_on_its_way_than_the_receive_maximum(side):
    peer = side.dial()
    receive_max = side.answer(peer, side.connect()).number(P.RECEIVE_MAX)
    for start in range(0, receive_max, 512):  # at QoS 2, each of them not released
        peer.send(*[side.publish(b"t", qos=2, packet_id=i + 1) for i in range(start, start + 512)])
    assert len(side.said(peer, "PUBREC")) == receive_max
    side.assert_ends(peer.send(side.publish(b"t", qos=2, packet_id=60_000)), 0x93)


@keeps(v5="4.9.0-2")
def test_each_acknowledgement_gives_its_place_back_in_whatever_order(side):
    peer = side.enter(b"s", (b"t", 2), items=[(P.RECEIVE_MAX, 3)])
    side.enter(b"p").send(*[side.publish(b"t", b"%d" % i, qos=1 + i % 2, packet_id=i + 1) for i in range(12)])
    oldest, second, third = side.messages(peer)
    peer.send(mqtt.puback(third.packet_id))
    (fourth,) = side.messages(peer)
    assert fourth.body == b"3"
    peer.send(mqtt.pubrec(second.packet_id), mqtt.pubcomp(second.packet_id))
    (fifth,) = side.messages(peer)
    peer.send(mqtt.refusal_5(mqtt.pubrec(fourth.packet_id), 0x80), mqtt.puback(fifth.packet_id))
    got = side.messages(peer)
    assert [one.body for one in got] == [b"5", b"6"]
    peer.send(mqtt.puback(third.packet_id))  # once more: it gives nothing
    assert side.messages(peer) == []
    peer.send(mqtt.puback(oldest.packet_id))
    assert side.bodies(peer) == [b"7"]


@keeps(v5="4.9.0-1 4.9.0-2 4.4.0-1")
def test_what_is_sent_again_keeps_to_the_receive_maximum_too(side):
    durable = [(P.SESSION_EXPIRY, 100), (P.RECEIVE_MAX, 6)]
    peer = side.enter(b"s", (b"t", 1), items=durable)
    side.enter(b"p").send(*[side.publish(b"t", b"%d" % i, qos=1, packet_id=i + 1) for i in range(9)])
    first = side.messages(peer)
    peer.send(*[mqtt.puback(first[i].packet_id) for i in (1, 3)])
    assert side.bodies(peer) == [b"6", b"7"]
    peer.vanish()
    peer = side.dial().send(side.connect(b"s", clean=False, items=[(P.SESSION_EXPIRY, 100), (P.RECEIVE_MAX, 2)]))
    got = side.messages(peer)
    on_its_way = list(got)
    while on_its_way:
        assert len(on_its_way) <= 2
        peer.send(mqtt.puback(on_its_way.pop().packet_id))  # the newest first
        came = side.messages(peer)
        on_its_way += came
        got += came
    assert [one.body for one in got] == [b"0", b"2", b"4", b"5", b"6", b"7", b"8"]


@keeps(v5="3.3.4-9 3.3.4-10 4.9.0-1 4.9.0-2 4.9.0-3")
def test_server_has_no_more_on_its_way_than_the_clients_receive_maximum(side):
    peer = side.enter(b"s", (b"t", 2), (b"zero", 0), items=[(P.RECEIVE_MAX, 2)])
    publisher = side.enter(b"p")
    publisher.send(*[side.publish(b"t", b"%d" % i, qos=1 + i % 2, packet_id=i + 1) for i in range(6)])
    first = side.messages(peer)
    assert [(one.body, one.qos) for one in first] == [(b"0", 1), (b"1", 2)]
    peer.send(mqtt.PINGREQ, side.subscribe(2, (b"u", 1)), side.publish(b"zero", b"0"), side.unsubscribe(3, b"u"))
    assert {one.kind for one in side.said(peer)} == {"PINGRESP", "SUBACK", "UNSUBACK", "PUBLISH"}
    peer.send(mqtt.pubrec(first[1].packet_id))
    assert [one.kind for one in side.said(peer)] == ["PUBREL"]  # not complete yet: its place is taken
    peer.send(mqtt.puback(first[0].packet_id))
    assert side.bodies(peer) == [b"2"]
    peer.send(mqtt.pubcomp(first[1].packet_id))
    assert side.bodies(peer) == [b"3"]
