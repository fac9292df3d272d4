"""Sections 3.15 and 4.12 of MQTT 5: AUTH, and enhanced authentication by the one method that there is."""

from __future__ import annotations

import pytest

from gateway.auth.users import hash_for_scram
from gateway.mqtt.properties import encode_properties
from tests.conformance.mqtt.clauses import keeps
from tests.conformance.mqtt.sides import P
from tests.support import mqtt
from tests.support.scram import ScramClient

METHOD = b"SCRAM-SHA-256"
USERS = {"alice": {"password_hash": hash_for_scram("secret", 4_096)}}
CONTINUE, AGAIN = 0x18, 0x19


def auth(code, data=None, method=METHOD):
    items = [(P.AUTH_METHOD, method)]
    return mqtt.packet(
        0xF0, bytes((code,)) + encode_properties(items if data is None else [*items, (P.AUTH_DATA, data)])
    )


def begin(side, client, items=()):
    """Return a connection that began to prove its name, and the AUTH that it was answered with."""
    if not side.is_open:
        side.open(auth={"mqtt_anonymous": False, "users": USERS})
    peer = side.dial()
    peer.send(side.connect(items=[(P.AUTH_METHOD, METHOD), (P.AUTH_DATA, client.first), *items]))
    return peer, side.one(peer)


def go_on(side, peer, client, asked):
    """Answer an AUTH with the client's proof; return what the gateway says."""
    return side.one(peer.send(auth(CONTINUE, client.final(asked.text(P.AUTH_DATA)))))


def proven(side, items=()):
    """Return a client that proved its name."""
    client = ScramClient()
    peer, asked = begin(side, client, items)
    connack = go_on(side, peer, client, asked)
    assert (connack.kind, connack.code) == ("CONNACK", 0)
    return peer


# AUTH


@keeps(v5="3.15.1-1")
def test_flags_of_an_auth_are_0(side):
    for flags in range(1, 16):
        side.assert_ends(side.enter().send(mqtt.packet(0xF0 | flags)), 0x81)


@keeps(v5="3.15.2-1")
def test_code_of_an_auth_is_one_of_those_of_auth(side):
    for code in {*range(256)} - {0x00, CONTINUE, AGAIN}:
        side.assert_ends(side.enter().send(mqtt.packet(0xF0, bytes((code, 0)))), 0x82)
    client = ScramClient()
    peer, asked = begin(side.reset(), client)
    go_on(side, peer, client, asked)
    again = side.one(peer.send(auth(AGAIN, client.first)))
    done = go_on(side, peer, client, again)
    assert [(one.kind, one.code) for one in (asked, again, done)] == [
        ("AUTH", CONTINUE),
        ("AUTH", CONTINUE),
        ("AUTH", 0x00),
    ]


@keeps(v5="3.15.2-2 3.15.2-3")
def test_auth_is_not_made_larger_than_the_client_takes(side):
    _, asked = begin(side, ScramClient(), [(P.PACKET_BYTES_MAX, 400)])
    assert asked.kind == "AUTH"
    assert asked.text(P.REASON) is None
    assert asked.properties.users == ()
    peer = side.dial().send(side.connect(items=[(P.AUTH_METHOD, METHOD), (P.PACKET_BYTES_MAX, 100)]))
    assert (side.one(peer).code, peer.is_closed) == (0x95, True)


# Enhanced authentication


@keeps(v5="3.1.2-30")
def test_client_with_a_method_sends_only_auth_and_disconnect_until_its_connack(side):
    for data in (mqtt.PINGREQ, side.publish(b"t"), side.subscribe(1, (b"t", 0)), side.connect()):
        peer, _ = begin(side, ScramClient())
        said = side.one(peer.send(data))
        assert (said.kind, said.code) == ("CONNACK", 0x82)
        assert peer.is_closed
    peer, _ = begin(side, ScramClient())
    assert side.said(peer.send(mqtt.DISCONNECT)) == []
    assert peer.is_closed


@keeps(v5="4.12.0-1")
def test_authentication_method_that_is_not_supported_is_refused(side):
    for items in ([(P.AUTH_METHOD, b"GS2-KRB5"), (P.AUTH_DATA, b"x")], [(P.AUTH_METHOD, b"scram-sha-256")]):
        peer = side.dial().send(side.connect(items=items))
        connack = side.one(peer)
        assert (connack.kind, connack.code) == ("CONNACK", 0x8C)
        assert peer.is_closed


@keeps(v5="4.12.0-2")
def test_auth_that_asks_for_more_has_code_0x18(side):
    _, asked = begin(side, ScramClient())
    assert (asked.kind, asked.code) == ("AUTH", CONTINUE)
    peer = side.dial().send(side.connect(items=[(P.AUTH_METHOD, METHOD)]))
    asked = side.one(peer)
    assert (asked.kind, asked.code) == ("AUTH", CONTINUE)
    asked = side.one(peer.send(auth(CONTINUE, ScramClient().first)))
    assert (asked.kind, asked.code) == ("AUTH", CONTINUE)


@keeps(v5="4.12.0-3")
def test_client_answers_with_code_0x18(side):
    for code in (0x00, AGAIN):
        client = ScramClient()
        peer, asked = begin(side, client)
        said = side.one(peer.send(auth(code, client.final(asked.text(P.AUTH_DATA)))))
        assert (said.kind, said.code) == ("CONNACK", 0x82)
        assert peer.is_closed


@pytest.mark.parametrize("client", [ScramClient("alice", "wrong"), ScramClient("nobody")])
@keeps(v5="4.12.0-4")
def test_authentication_that_fails_is_refused_and_closed(side, client):
    peer, asked = begin(side, client)
    said = go_on(side, peer, client, asked)
    assert (said.kind, said.code) == ("CONNACK", 0x87)
    assert peer.is_closed


@keeps(v5="4.12.0-5")
def test_auth_and_connack_repeat_the_authentication_method(side):
    client = ScramClient()
    peer, asked = begin(side, client)
    connack = go_on(side, peer, client, asked)
    again = side.one(peer.send(auth(AGAIN, client.first)))
    assert [one.text(P.AUTH_METHOD) for one in (asked, connack, again)] == [METHOD] * 3
    peer, _ = begin(side, ScramClient())
    said = side.one(peer.send(auth(CONTINUE, b"x", method=b"OTHER")))
    assert (said.kind, said.code) == ("CONNACK", 0x82)


@keeps(v5="4.12.0-6")
def test_client_without_an_authentication_method_is_sent_none(side):
    peer = side.dial()
    said = side.said(peer.send(side.connect(), mqtt.PINGREQ))
    assert [one.kind for one in said] == ["CONNACK", "PINGRESP"]
    assert said[0].text(P.AUTH_METHOD) is None
    side.reset().open(auth={"mqtt_anonymous": False, "users": USERS})
    for password, code in ((b"secret", 0), (b"x", 0x86)):
        said = side.one(side.dial().send(side.connect(user=b"alice", password=password)))
        assert (said.kind, said.code, said.text(P.AUTH_METHOD)) == ("CONNACK", code, None)


@keeps(v5="4.12.0-7")
def test_client_without_an_authentication_method_sends_no_auth(side):
    for code in (CONTINUE, AGAIN):
        side.assert_ends(side.enter().send(auth(code, ScramClient().first)), 0x82)


@keeps(v5="4.12.1-1")
def test_client_authenticates_anew_with_its_method(side):
    peer = proven(side)
    client = ScramClient()
    asked = side.one(peer.send(auth(AGAIN, client.first)))
    assert go_on(side, peer, client, asked).code == 0
    assert not peer.is_closed
    side.assert_ends(peer.send(auth(AGAIN, client.first, method=b"OTHER")), 0x82)


@keeps(v5="4.12.1-2")
def test_new_authentication_that_fails_is_closed(side):
    peer = proven(side)
    client = ScramClient("alice", "wrong")
    asked = side.one(peer.send(auth(AGAIN, client.first)))
    peer.send(auth(CONTINUE, client.final(asked.text(P.AUTH_DATA))))
    side.assert_ends(peer, 0x87)
