"""Section 3.1, CONNECT: its bytes, and what becomes of a client that may not come in."""

from __future__ import annotations

from tests.conformance.mqtt.clauses import keeps
from tests.conformance.mqtt.sides import P, parse
from tests.support import mqtt
from tests.support.mqtt import text

WILL = (b"gone", b"w", 0, False)
USER, PASSWORD, WILL_FLAG, WILL_RETAIN, CLEAN = 0x80, 0x40, 0x04, 0x20, 0x02


def is_let_in(side, data):
    """Return whether a first packet lets a client in; see that it is closed otherwise."""
    peer = side.dial().send(data)
    said = side.said(peer)
    if not peer.is_closed:
        assert (said[0].kind, said[0].code) == ("CONNACK", 0)
        return True
    assert all(one.kind == "CONNACK" and one.code for one in said)
    return False


@keeps(v3="3.1.0-1", v5="3.1.0-1")
def test_first_packet_is_a_connect(side):
    for data in (
        side.publish(b"a"),
        side.subscribe(1, (b"a", 0)),
        side.unsubscribe(1, b"a"),
        mqtt.puback(1),
        mqtt.PINGREQ,
        mqtt.DISCONNECT,
        mqtt.packet(0xF0),
    ):
        side.assert_refused(side.dial().send(data, side.connect()), 0)


@keeps(v3="3.1.0-2", v5="3.1.0-2")
def test_second_connect_ends_the_connection(side):
    side.assert_ends(side.enter().send(side.connect()), 0x82)


@keeps(v3="3.1.2-1", v5="3.1.2-1")
def test_another_protocol_name_is_closed(side):
    for name in (b"mqtt", b"MQTTX", b"MQT", b"", b"AMQP", b"MQIsdp"):
        assert not is_let_in(side, side.connect_body(CLEAN, text(b"c"), protocol=name))


@keeps(v3="3.1.2-2", v5="3.1.2-2")
def test_level_that_is_not_spoken_is_answered_and_closed(side):
    for level in (1, 3, 6, 255):
        peer = side.dial().send(side.connect_body(CLEAN, text(b"c"), level=level))
        assert peer.take() == [mqtt.connack(1)]
        assert peer.is_closed


@keeps(v3="3.1.2-3", v5="3.1.2-3")
def test_reserved_flag_is_0(side):
    side.assert_refused(side.dial().send(side.connect_body(CLEAN | 1, text(b"c"))), 0x81)


@keeps(v3="3.1.2-9", v5="3.1.2-9")
def test_will_flag_says_that_there_is_a_will(side):
    flags = CLEAN | WILL_FLAG
    for payload in (text(b"c"), text(b"c") + side.will(b"gone", b"w")[:-3]):
        side.assert_refused(side.dial().send(side.connect_body(flags, payload)), 0x81)
    watcher = side.enter(b"w", (b"gone", 2))
    peer = side.dial().send(side.connect_body(flags | 2 << 3, text(b"c") + side.will(b"gone", b"w")))
    peer.vanish()
    assert [(one.topic, one.body, one.qos) for one in side.messages(watcher)] == [(b"gone", b"w", 2)]


@keeps(v3="3.1.2-11 3.1.2-13 3.1.2-15", v5="3.1.2-11 3.1.2-13")
def test_without_the_will_flag_there_is_nothing_of_a_will(side):
    for flags in (1 << 3, 2 << 3, 3 << 3, WILL_RETAIN):
        side.assert_refused(side.dial().send(side.connect_body(CLEAN | flags, text(b"c"))), 0x81)
    extra = side.connect_body(CLEAN, text(b"c") + side.will(b"gone", b"w"))
    side.assert_refused(side.dial().send(extra), 0x81)


@keeps(v3="3.1.2-14", v5="3.1.2-12")
def test_qos_of_a_will_is_0_1_or_2(side):
    watcher = side.enter(b"w", (b"gone", 2))
    for qos in range(3):
        side.enter(will=(b"gone", b"w%d" % qos, qos, False)).vanish()
    assert [(one.body, one.qos) for one in side.messages(watcher)] == [(b"w0", 0), (b"w1", 1), (b"w2", 2)]
    data = side.connect_body(CLEAN | WILL_FLAG | 3 << 3, text(b"c") + side.will(b"gone", b"w"))
    side.assert_refused(side.dial().send(data), 0x81)


@keeps(v3="3.1.2-18 3.1.2-19", v5="3.1.2-16 3.1.2-17")
def test_user_flag_says_whether_there_is_a_user_name(side):
    side.assert_refused(side.dial().send(side.connect_body(CLEAN, text(b"c") + text(b"u"))), 0x81)
    side.assert_refused(side.dial().send(side.connect_body(CLEAN | USER, text(b"c"))), 0x81)
    assert is_let_in(side, side.connect_body(CLEAN | USER, text(b"c") + text(b"u")))


@keeps(v3="3.1.2-20 3.1.2-21", v5="3.1.2-18 3.1.2-19")
def test_password_flag_says_whether_there_is_a_password(side):
    named = text(b"c") + text(b"u")
    side.assert_refused(side.dial().send(side.connect_body(CLEAN | USER, named + text(b"p"))), 0x81)
    side.assert_refused(side.dial().send(side.connect_body(CLEAN | USER | PASSWORD, named)), 0x81)
    assert is_let_in(side, side.connect_body(CLEAN | USER | PASSWORD, named + text(b"p")))


@keeps(v3="3.1.2-22")
def test_there_is_no_password_without_a_user_name(side):
    side.assert_refused(side.dial().send(side.connect_body(CLEAN | PASSWORD, text(b"c") + text(b"p"))), 0)


@keeps(v3="3.1.2-24", v5="3.1.2-22")
def test_silent_client_is_disconnected_after_one_and_a_half_keep_alives(side):
    watcher = side.enter(b"w", (b"gone", 0), keep_alive_s=0)
    peer = side.enter(keep_alive_s=10, will=WILL)
    for data in (
        mqtt.PINGREQ,
        side.publish(b"t"),
        mqtt.puback(1),
        side.subscribe(1, (b"t", 0)),
        side.unsubscribe(2, b"t"),
    ):
        side.pass_time(14.9)
        assert not peer.is_closed
        peer.send(data)  # any packet will do
    peer.take()
    side.pass_time(15.1)
    side.assert_ends(peer, 0x8D)
    assert side.bodies(watcher) == [b"w"]  # as if the network had failed


@keeps(v3="3.1.3-1", v5="3.1.3-1")
def test_fields_come_in_one_order(side):
    side.open_for(u={})
    flags = CLEAN | WILL_FLAG | USER | PASSWORD
    watcher = side.enter(b"w", (b"gone", 0), user=b"u", password=b"p")
    in_order = [text(b"me"), side.will(b"gone", b"w"), text(b"u"), text(b"p")]
    peer = side.dial().send(side.connect_body(flags, b"".join(in_order)))
    assert side.said(peer)[0].code == 0
    peer.vanish()
    assert side.bodies(watcher) == [b"w"]
    swapped = [in_order[0], in_order[1], in_order[3], in_order[2]]
    assert not is_let_in(side, side.connect_body(flags, b"".join(swapped)))


@keeps(v3="3.1.3-2", v5="3.1.3-2")
def test_client_identifier_says_which_session_is_meant(side):
    side.enter(b"one", (b"t", 1), stays=True).vanish()
    side.enter(b"p").send(side.publish(b"t", qos=1, packet_id=1))
    for name, present in ((b"onE", False), (b"one ", False), (b"one", True)):
        peer = side.dial()
        said = side.said(peer.send(side.connect(name, stays=True)))
        assert (said[0].ack_flags, [one.body for one in said[1:]]) == (present, [b"x"] * present)


@keeps(v3="3.1.3-3", v5="3.1.3-3")
def test_client_identifier_is_there_and_first(side):
    for payload in (b"", b"\0", b"\0\5abc"):
        side.assert_refused(side.dial().send(side.connect_body(CLEAN, payload)), 0x81)
    flags = CLEAN | USER
    peer = side.dial().send(side.connect_body(flags, text(b"first") + text(b"second")))
    assert side.said(peer)[0].code == 0
    side.enter(b"second")
    assert not peer.is_closed
    side.enter(b"first")
    assert peer.is_closed


@keeps(v3="3.1.3-4", v5="3.1.3-4")
def test_client_identifier_is_utf_8(side):
    for client_id in (b"\xff\xfe", b"a\xed\xa0\x80", b"\xc0\xaf"):
        side.assert_refused(side.dial().send(side.connect(client_id)), 0x81)
    assert is_let_in(side, side.connect("gerät".encode()))


@keeps(v3="3.1.3-5", v5="3.1.3-5")
def test_identifiers_of_letters_and_digits_are_taken(side):
    every = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    for client_id in (b"Z", b"0" * 23, every[:23], every[23:46], every[39:]):
        assert is_let_in(side, side.connect(client_id))


@keeps(v3="3.1.3-6", v5="3.1.3-6")
def test_client_without_an_identifier_is_given_one_of_its_own(side):
    peers = [side.enter(b"", (b"t", 0)) for _ in range(3)]
    side.enter(b"p").send(side.publish(b"t"))
    assert [side.bodies(peer) for peer in peers] == [[b"x"]] * 3  # none was taken over


@keeps(v5="3.1.3-7")
def test_client_is_told_the_identifier_that_it_was_given(side):
    connack = side.answer(side.dial(), side.connect(b"", stays=True))
    given = connack.text(P.ASSIGNED_CLIENT_ID)
    assert side.answer(side.dial(), side.connect(given, stays=True)).ack_flags == 1
    assert side.answer(side.dial(), side.connect(b"named")).text(P.ASSIGNED_CLIENT_ID) is None


@keeps(v3="3.1.3-7 3.1.3-8")
def test_no_identifier_and_no_clean_session_is_return_code_2(side):
    peer = side.dial().send(side.connect(b"", clean=False))
    assert peer.take() == [mqtt.connack(2)]
    assert peer.is_closed


@keeps(v3="3.1.3-9", v5="3.1.3-8")
def test_identifier_that_is_not_taken_is_answered_and_closed(side):
    peer = side.dial().send(side.connect(b"x" * 2_000))
    connack = side.one(peer)
    assert (connack.kind, connack.code) == ("CONNACK", 0x85 if side.is_5 else 2)
    assert peer.is_closed


@keeps(v3="3.1.3-10", v5="3.1.3-11")
def test_topic_of_a_will_is_utf_8(side):
    for topic in (b"\xff", b"a\xed\xa0\x80", b"a\0"):
        side.assert_refused(side.dial().send(side.connect(will=(topic, b"w", 0, False))), 0x81)


@keeps(v3="3.1.3-11", v5="3.1.3-12")
def test_user_name_is_utf_8(side):
    for user in (b"\xc3\x28", b"\xc0\xaf", b"u\0"):
        side.assert_refused(side.dial().send(side.connect(user=user)), 0x81)
    assert is_let_in(side, side.connect(user="jürgen".encode()))


@keeps(v3="3.1.4-1 3.2.2-6", v5="3.1.4-1")
def test_connect_that_breaks_a_rule_is_closed(side):
    for data in (
        mqtt.packet(0x10),
        side.connect_body(CLEAN, text(b"c") + b"\0"),
        side.connect()[:1] + b"\x05" + side.connect()[2:7],
        side.connect(will=(b"a/#", b"w", 0, False)),
        side.connect(will=(b"", b"w", 0, False)),
    ):
        peer = side.dial().send(data)
        assert peer.is_closed
        said = peer.take()
        if side.is_5:  # it may be answered
            assert all(parse(one, 5).code >= 0x80 for one in said)
        else:
            assert said == []


@keeps(v5="3.1.4-2")
def test_connect_that_further_checks_refuse_is_closed(side):
    side.open_for(u={})
    for options, code in (({}, 0x87), ({"user": b"u", "password": b"x"}, 0x86)):
        peer = side.dial().send(side.connect(**options))
        connack = side.one(peer)
        assert (connack.kind, connack.code) == ("CONNACK", code)
        assert peer.is_closed


@keeps(v3="3.1.4-2", v5="3.1.4-3")
def test_newer_connection_of_a_client_ends_the_older_one(side):
    older = side.enter()
    newer = side.enter()
    side.assert_ends(older, 0x8E)
    assert not newer.is_closed


@keeps(v3="3.1.4-3", v5="3.1.4-4")
def test_clean_start_is_acted_on(side):
    side.enter(b"c", (b"t", 1), stays=True).vanish()
    assert side.answer(side.dial(), side.connect(stays=True)).ack_flags == 1
    assert side.answer(side.dial(), side.connect(clean=True)).ack_flags == 0
    assert side.answer(side.dial(), side.connect(stays=True)).ack_flags == 0


@keeps(v3="3.1.4-4", v5="3.1.4-5")
def test_good_connect_is_answered_with_0(side):
    for data in (side.connect(), side.connect(stays=True), side.connect(will=WILL, user=b"u", password=b"p")):
        connack = side.one(side.dial().send(data))
        assert (connack.kind, connack.code) == ("CONNACK", 0)


@keeps(v3="3.1.4-5", v5="3.1.4-6")
def test_what_comes_behind_a_refused_connect_is_not_acted_on(side):
    side.open_for(u={})
    watcher = side.enter(b"w", (b"#", 0), user=b"u", password=b"p")
    peer = side.dial().send(side.connect(), side.publish(b"t", b"never"), mqtt.PINGREQ)
    assert [one.kind for one in side.said(peer)] == ["CONNACK"]
    assert peer.is_closed
    assert side.bodies(watcher) == []
