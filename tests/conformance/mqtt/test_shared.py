"""Section 4.8 of MQTT 5: shared subscriptions."""

from __future__ import annotations

from tests.conformance.mqtt.clauses import keeps
from tests.support import mqtt

SHARED = b"$share/g/t"


@keeps(v5="4.8.2-1")
def test_shared_subscription_has_a_group(side):
    for topic_filter in (b"$share//t", b"$share/", b"$share//"):
        side.assert_ends(side.enter().send(side.subscribe(1, (topic_filter, 1))), 0x8F)
    one, other = (side.enter(name, (SHARED, 1)) for name in (b"a", b"b"))
    side.enter(b"p").send(*[side.publish(b"t", b"%d" % i, qos=1, packet_id=i + 1) for i in range(6)])
    assert sorted(side.bodies(one) + side.bodies(other)) == [b"%d" % i for i in range(6)]


@keeps(v5="4.8.2-2")
def test_group_has_no_wildcards_and_a_filter_behind_it(side):
    for topic_filter in (b"$share/g", b"$share/g/", b"$share/+/t", b"$share/#", b"$share/a+b/t", b"$share/#/t"):
        side.assert_ends(side.enter().send(side.subscribe(1, (topic_filter, 1))), 0x8F)
    said = side.one(side.enter().send(side.subscribe(1, (b"$share/g/+/x/#", 1), (b"$share/g//", 0))))
    assert said.codes == (1, 0)


@keeps(v5="4.8.2-3")
def test_granted_qos_of_each_member_is_kept_to(side):
    for name, qos in ((b"zero", 0), (b"one", 1), (b"two", 2)):
        peer = side.enter(name, (b"$share/" + name + b"/t", qos))
        side.enter(b"p").send(*[side.publish(b"t", qos=each, packet_id=each) for each in range(3)])
        assert [one.qos for one in side.messages(peer)] == [min(each, qos) for each in range(3)]


@keeps(v5="4.8.2-4")
def test_message_at_qos_2_is_brought_to_its_end_with_its_member(side):
    peer = side.enter(b"a", (SHARED, 2), stays=True)
    side.enter(b"p").send(*[side.publish(b"t", b"%d" % i, qos=2, packet_id=i + 1) for i in range(2)])
    received, sent = side.messages(peer)
    peer.send(mqtt.pubrec(received.packet_id))
    peer.vanish()
    side.enter(b"b", (SHARED, 2))
    told = side.said(side.dial().send(side.connect(b"a", stays=True)))
    assert [(one.packet_id, one.dup) for one in told if one.kind == "PUBLISH"] == [(sent.packet_id, True)]
    assert [one.packet_id for one in told if one.kind == "PUBREL"] == [received.packet_id]


@keeps(v5="4.8.2-5")
def test_message_at_qos_2_goes_to_no_other_member(side):
    peer = side.enter(b"a", (SHARED, 2))
    side.enter(b"p").send(side.publish(b"t", b"mine", qos=2, packet_id=1))
    assert side.bodies(peer) == [b"mine"]
    other = side.enter(b"b", (SHARED, 2))
    peer.vanish()
    assert side.messages(other) == []


@keeps(v5="4.8.2-6")
def test_what_a_member_says_no_to_goes_to_no_other(side):
    one = side.enter(b"a", (SHARED, 1))
    side.enter(b"p").send(side.publish(b"t", qos=1, packet_id=1))
    (message,) = side.messages(one)
    other = side.enter(b"b", (SHARED, 1))
    one.send(mqtt.packet(0x40, message.packet_id.to_bytes(2, "big") + b"\x97"))
    one.vanish()
    assert side.messages(other) == []
    side.enter(b"p").send(side.publish(b"t", b"next", qos=1, packet_id=1))
    assert side.bodies(other) == [b"next"]
