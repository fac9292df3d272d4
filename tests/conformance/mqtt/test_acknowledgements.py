"""Sections 3.4 to 3.7: PUBACK, PUBREC, PUBREL, PUBCOMP."""

from __future__ import annotations

import pytest

from tests.conformance.mqtt.clauses import keeps
from tests.conformance.mqtt.sides import P
from tests.support import mqtt

TAKEN = {0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99}  # codes of PUBACK and PUBREC
RELEASED = {0x00, 0x92}  # of PUBREL and PUBCOMP


def exchange(side, items=()):
    """Return what the gateway says where all goes well, and where nothing does."""
    side.open_for(u={}, denied={"may_publish": False})
    subscriber = side.enter(b"s", (b"t", 2), user=b"u", password=b"p", items=items)
    said = []
    for user in (b"denied", b"u"):
        peer = side.enter(b"p-" + user, user=user, password=b"p", items=items)
        peer.send(*[side.publish(b"t", qos=qos, packet_id=qos) for qos in (1, 2)])
        said += side.said(peer)
    peer.send(mqtt.pubrel(2), mqtt.pubrel(77))
    messages = side.messages(subscriber)
    subscriber.send(*[mqtt.pubrec(one.packet_id) for one in messages if one.qos == 2], mqtt.pubrec(77))
    return said + side.said(peer) + side.said(subscriber)


@pytest.mark.parametrize(("kind", "codes"), [("PUBACK", {0, 0x87}), ("PUBREC", {0, 0x87})])
@keeps(v5="3.4.2-1 3.5.2-1")
def test_code_is_one_of_those_of_puback_and_pubrec(side, kind, codes):
    assert {one.code for one in exchange(side) if one.kind == kind} == codes <= TAKEN


@pytest.mark.parametrize("kind", ["PUBREL", "PUBCOMP"])
@keeps(v5="3.6.2-1 3.7.2-1")
def test_code_is_one_of_those_of_pubrel_and_pubcomp(side, kind):
    assert {one.code for one in exchange(side) if one.kind == kind} == {0x00, 0x92} <= RELEASED


@pytest.mark.parametrize("kind", ["PUBACK", "PUBREC", "PUBREL", "PUBCOMP"])
@keeps(
    v5="3.4.2-2 3.4.2-3 3.5.2-2 3.5.2-3 3.6.2-2 3.6.2-3 3.7.2-2 3.7.2-3",
)
def test_acknowledgement_is_not_made_larger_than_the_client_takes(side, kind):
    said = [one for one in exchange(side, [(P.PACKET_BYTES_MAX, 20)]) if one.kind == kind]
    assert {one.code for one in said} in ({0, 0x87}, {0, 0x92})
    assert all(one.text(P.REASON) is None and not one.properties.users for one in said)


@pytest.mark.at_once(reason="a release does not wait for the answer to its message, which no client sends it before")
@pytest.mark.parametrize("stays", [False, True])
@keeps(v3="4.3.3-2", v5="4.3.3-10 4.3.3-11")
def test_resent_message_and_its_release_are_answered_one_after_the_other(side, stays):
    subscriber = side.enter(b"s", (b"t", 0))
    side.enter(b"p", stays=stays).send(side.publish(b"t", qos=2, packet_id=7)).vanish()
    peer = side.enter(b"p", stays=stays)
    peer.send(
        side.publish(b"new", qos=1, packet_id=8), side.publish(b"t", qos=2, packet_id=7, dup=True), mqtt.pubrel(7)
    )
    assert [(one.kind, one.packet_id) for one in side.said(peer)] == [("PUBACK", 8), ("PUBREC", 7), ("PUBCOMP", 7)]
    assert len(side.messages(subscriber)) == (1 if stays else 2)


@keeps(v5="3.4.2-2 3.5.2-2 3.1.2-29")
def test_refusal_says_why_in_words_where_the_client_wants_them_and_has_room(side):
    whole = [one for one in exchange(side) if one.code == 0x87]
    assert [one.kind for one in whole] == ["PUBACK", "PUBREC"]
    words = {one.text(P.REASON) for one in whole}
    assert len(words) == 1
    (size,) = {9 + len(text) for text in words}  # of the packet
    for items, told in (
        ([(P.PACKET_BYTES_MAX, size)], words),
        ([(P.PACKET_BYTES_MAX, size - 1)], {None}),
        ([(P.REQUEST_PROBLEM, 0)], {None}),
    ):
        assert {one.text(P.REASON) for one in exchange(side.reset(), items) if one.code == 0x87} == told


@keeps(v3="3.6.1-1", v5="3.6.1-1")
def test_flags_of_a_pubrel_are_0010(side):
    for flags in range(16):
        peer = side.enter().send(side.publish(b"t", qos=2, packet_id=1))
        peer.take()
        peer.send(mqtt.packet(0x60 | flags, b"\0\1"))
        if flags == 2:
            assert side.one(peer).kind == "PUBCOMP"
        else:
            side.assert_ends(peer, 0x81)
