"""What a conversation does beside the tests of the door in test_handler.py and test_version_5.py."""

from __future__ import annotations

from gateway.mqtt.properties import Property, decode_properties
from tests.support.logins import quick_hash
from tests.support.mqtt import connect_5, puback, publish_5, pubrec, refusal_5, suback_5, subscribe_5


def test_what_is_not_allowed_is_answered_with_its_reason(make_world):
    user = {"password_hash": quick_hash("secret"), "may_publish": False, "may_subscribe": False}
    world = make_world(auth={"users": {"alice": user}})
    peer = world.dial().send(connect_5(user=b"alice", password=b"secret"))
    peer.take()
    peer.send(publish_5(b"t", b"x", qos=1, packet_id=1), publish_5(b"t", b"x", qos=2, packet_id=2))
    why = b"not authorized: no right to publish to this topic"
    assert peer.take() == [refusal_5(puback(1), 0x87, why), refusal_5(pubrec(2), 0x87, why)]
    assert peer.send(subscribe_5(3, (b"t", 1))).take() == [suback_5(3, 0x87, reason=b"not authorized: t")]
    assert world.counts.refused == {"publish_not_authorized": 1, "subscription": 1}


def test_reason_is_told_in_words_too(world):
    peer = world.dial().send(connect_5())
    peer.take()
    (answer,) = peer.send(publish_5(b"a/#", b"x")).take()
    found, _ = decode_properties(answer, 3, frozenset({Property.REASON}))
    assert b"wildcard" in found.texts[Property.REASON]
