"""Section 3.2, CONNACK."""

from __future__ import annotations

from tests.conformance.mqtt.clauses import keeps
from tests.conformance.mqtt.sides import P
from tests.support import mqtt

CODES = {  # of a CONNACK of MQTT 5
    0x00, 0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8A, 0x8C, 0x90, 0x95, 0x97, 0x99, 0x9A, 0x9B,
    0x9C, 0x9D, 0x9F,
}  # fmt: skip


def refused(side):
    """Return the CONNACKs of clients that are not let in, each with its connection."""
    side.open_for(u={})
    for data in (
        side.connect(),
        side.connect(user=b"u", password=b"x"),
        side.connect(b"x" * 2_000, user=b"u", password=b"p"),
    ):
        peer = side.dial().send(data)
        yield side.one(peer), peer


@keeps(v3="3.2.0-1", v5="3.2.0-1")
def test_first_packet_to_the_client_is_the_connack(side):
    side.enter(b"c", (b"t", 1), stays=True).vanish()
    side.enter(b"p").send(side.publish(b"t", qos=1, packet_id=1))
    peer = side.dial().send(side.connect(stays=True), mqtt.PINGREQ, side.subscribe(1, (b"t", 1)))
    said = [one.kind for one in side.said(peer)]
    assert said[0] == "CONNACK"
    assert {"PUBLISH", "PINGRESP", "SUBACK"} <= set(said)


@keeps(v5="3.2.0-2")
def test_there_is_one_connack_in_a_connection(side):
    peer = side.dial().send(side.connect(), mqtt.PINGREQ)
    peer.send(side.connect(), side.connect())
    assert [one.kind for one in side.said(peer)] == ["CONNACK", "PINGRESP", "DISCONNECT"]


@keeps(v5="3.2.2-1")
def test_reserved_bits_of_the_connack_flags_are_0(side):
    for stays in (False, True, True):
        assert side.answer(side.dial(), side.connect(stays=stays)).ack_flags in {0, 1}
    side.reset()
    assert all(connack.ack_flags == 0 for connack, _ in refused(side))


@keeps(v3="3.2.2-1", v5="3.2.2-2")
def test_session_present_is_0_after_a_clean_start(side):
    side.enter(stays=True).vanish()
    connack = side.answer(side.dial(), side.connect(clean=True))
    assert (connack.code, connack.ack_flags) == (0, 0)


@keeps(v3="3.2.2-2 3.2.2-3", v5="3.2.2-3")
def test_session_present_says_whether_a_session_is_resumed(side):
    for present in (0, 1, 1):
        peer = side.dial()
        connack = side.answer(peer, side.connect(stays=True))
        assert (connack.code, connack.ack_flags) == (0, present)
        peer.vanish()
    side.restart()
    assert side.answer(side.dial(), side.connect(stays=True)).ack_flags == 1


@keeps(v3="3.2.2-4", v5="3.2.2-6")
def test_session_present_is_0_where_a_client_is_not_let_in(side):
    side.open_for(u={})
    side.enter(stays=True, user=b"u", password=b"p").vanish()
    connack = side.answer(side.dial(), side.connect(stays=True))
    assert connack.code
    assert connack.ack_flags == 0


@keeps(v3="3.2.2-5", v5="3.2.2-7")
def test_connection_is_closed_after_a_refusal(side):
    answers = list(refused(side))
    assert [connack.code for connack, _ in answers] == ([0x87, 0x86, 0x85] if side.is_5 else [5, 4, 2])
    assert all(peer.is_closed for _, peer in answers)


@keeps(v5="3.2.2-8")
def test_code_is_one_of_those_of_connack(side):
    said = [connack.code for connack, _ in refused(side)]
    for data in (
        side.connect(items=[(P.AUTH_METHOD, b"x")]),
        side.connect(items=[(P.RECEIVE_MAX, 0)]),
        side.connect_body(3, mqtt.text(b"c")),
        side.connect(b"\xff"),
        side.connect(will=(b"#", b"", 0, False)),
        side.connect(user=b"u", password=b"p"),
    ):
        said += [one.code for one in side.said(side.dial().send(data))]
    assert len(said) == 9
    assert set(said) <= CODES


@keeps(v5="3.2.2-9 3.2.2-10 3.2.2-12")
def test_all_qos_are_supported(side):
    peer = side.dial()
    connack = side.answer(peer, side.connect(will=(b"gone", b"w", 2, False)))
    assert (connack.code, connack.number(P.QOS_MAX)) == (0, -1)
    peer.send(*[side.publish(b"t", qos=qos, packet_id=qos) for qos in (1, 2)])
    peer.send(side.subscribe(1, *[(b"t%d" % qos, qos) for qos in range(3)]))
    unheard = 0x10 if side.is_5 else 0
    assert [(one.kind, one.code, one.codes) for one in side.said(peer)] == [
        ("PUBACK", unheard, ()),
        ("PUBREC", unheard, ()),
        ("SUBACK", 0, (0, 1, 2)),
    ]


@keeps(v5="3.2.2-13")
def test_retained_messages_are_supported(side):
    connack = side.answer(side.dial(), side.connect(will=(b"gone", b"w", 1, True)))
    assert (connack.code, connack.number(P.RETAIN_AVAILABLE, 1)) == (0, 1)


@keeps(v5="3.2.2-15")
def test_client_sends_no_packet_above_the_maximum_that_it_is_told(side):
    side.open(packet_bytes_max=2_000)
    watcher = side.enter(b"w", (b"t", 0))
    peer = side.dial()
    bytes_max = side.answer(peer, side.connect()).number(P.PACKET_BYTES_MAX)
    assert bytes_max == 2_000
    largest = side.publish(b"t", b"x" * (bytes_max - 7))
    assert len(largest) == bytes_max
    peer.send(largest)
    assert [len(one.body) for one in side.messages(watcher)] == [bytes_max - 7]
    side.assert_ends(peer.send(side.publish(b"t", b"x" * (bytes_max - 6))), 0x95)


@keeps(v5="3.2.2-16")
def test_client_without_an_identifier_is_told_one_that_nobody_else_has(side):
    given = {side.answer(side.dial(), side.connect(b"")).text(P.ASSIGNED_CLIENT_ID) for _ in range(50)}
    assert len(given) == 50
    assert all(given)


@keeps(v5="3.2.2-19 3.2.2-20")
def test_connack_is_not_made_larger_than_the_client_takes(side):
    side.open_for(u={})
    for options in ({}, {"user": b"u", "password": b"p"}, {"user": b"u", "password": b"x"}):
        connack = side.one(side.dial().send(side.connect(items=[(P.PACKET_BYTES_MAX, 30)], **options)))
        assert connack.kind == "CONNACK"
        assert connack.text(P.REASON) is None
        assert connack.properties.users == ()


@keeps(v5="3.2.2-22")
def test_server_goes_by_the_clients_keep_alive_where_it_tells_none(side):
    peer = side.dial()
    assert side.answer(peer, side.connect(keep_alive_s=100)).number(P.SERVER_KEEP_ALIVE) == -1
    side.pass_time(149)
    assert not peer.is_closed
    side.pass_time(2)
    assert peer.is_closed
