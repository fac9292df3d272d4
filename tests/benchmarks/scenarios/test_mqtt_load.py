"""The load's own packets, and both sides of QoS 2, however the bytes are cut."""

from __future__ import annotations

import asyncio

import pytest

from tests.benchmarks.scenarios.load import Count
from tests.benchmarks.scenarios.mqtt_load import (
    Publisher2,
    Subscriber2,
    connect_packet,
    end_of_packets,
    publish_packet,
    subscribe_packet,
    user_properties,
)

RECEIVED, RELEASED, COMPLETED = (bytes([first, 2, 0]) for first in (0x50, 0x62, 0x70))


class Written:
    """A transport that keeps what was written."""

    def __init__(self):
        self.data = b""

    def write(self, data):
        self.data += data


def in_a_loop(peer_type, *arguments):
    """Return a peer that is past its set-up, and what it writes."""

    async def make():
        peer = peer_type(*arguments)
        peer.ready.set_result(None)
        peer.transport = Written()
        return peer

    return asyncio.run(make())


def test_version_5_has_its_properties_and_3_1_1_none():
    pair = b"\x26\x00\x01a\x00\x02bc"
    assert user_properties({"a": "bc"}) == pair
    assert publish_packet("t", b"x") == b"\x30\x04\x00\x01tx"
    assert publish_packet("t", b"x", 7, qos=2) == b"\x34\x06\x00\x01t\x00\x07x"
    assert publish_packet("t", b"x", 7, properties=b"") == b"\x32\x07\x00\x01t\x00\x07\x00x"
    assert publish_packet("t", b"x", properties=pair) == b"\x30\x0d\x00\x01t\x08" + pair + b"x"
    assert connect_packet("c", version=5) == b"\x10\x0e\x00\x04MQTT\x05\x02\xff\xff\x00\x00\x01c"
    assert subscribe_packet(["t"], 1, 5) == b"\x82\x07\x00\x01\x00\x00\x01t\x01"


@pytest.mark.parametrize("count", [1, 2])
def test_answers_are_waited_for_until_all_are_whole(count):
    answers = [b"\x20\x02\x00\x00", b"\x90\x83\x00\x00\x01\x01"]
    whole = b"".join(answers[:count])
    assert [end_of_packets(whole[:size], count) for size in range(len(whole))] == [0] * len(whole)
    assert end_of_packets(whole + b"\x30", count) == len(whole)


@pytest.mark.parametrize("cut", range(1, 13))
def test_publisher_releases_what_was_received_and_counts_what_is_complete(cut):
    publisher = in_a_loop(Publisher2, "p", Count(), "t", b"x", 5)
    publisher.unacked = 5
    answers = RECEIVED + b"\x01" + COMPLETED + b"\x50" + RECEIVED + b"\x70"  # identifiers that look like first bytes
    for at in range(0, len(answers), cut):
        publisher.data_received(answers[at : at + cut])
    assert publisher.transport.data == RELEASED + b"\x01" + RELEASED + b"\x70"
    assert (publisher.count.acked, publisher.unacked) == (1, 4)


@pytest.mark.parametrize("cut", range(1, 23))
def test_subscriber_answers_both_steps_and_counts_each_message_once(cut):
    packets = [publish_packet("t", b"\x62\x34", number, qos=2) for number in (1, 2)]
    subscriber = in_a_loop(Subscriber2, "s", Count(), ["t"], 2, len(packets[0]), 5)
    came = packets[0] + RELEASED + b"\x01" + packets[1] + RELEASED + b"\x02"
    for at in range(0, len(came), cut):
        subscriber.data_received(came[at : at + cut])
    assert subscriber.transport.data == b"".join(
        kind + bytes([number]) for number in (1, 2) for kind in (RECEIVED, COMPLETED)
    )
    assert subscriber.count.received == 2
