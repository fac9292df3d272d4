from __future__ import annotations

import pytest

from gateway.mqtt.exact_log import ExactLog, tag_exact
from tests.support.mqtt import publish


@pytest.mark.parametrize("packet_id", [1, 0x7FFF, 0x8000, 65_535])
def test_log_says_which_client_published_under_which_identifier(world, packet_id):
    world.client(b"p", clean=False).send(publish(b"t", b"x", qos=2, packet_id=packet_id))
    assert ExactLog(world.broker).find_from(0) == [(b"p", packet_id, 0)]
    assert -(2**31) <= tag_exact(packet_id) < 2**31


def test_nothing_is_said_of_other_messages_and_other_clients(world):
    durable = world.client(b"p", clean=False)
    durable.send(publish(b"t", b"x", qos=2, packet_id=5))
    durable.send(publish(b"t", b"x", qos=1, packet_id=6), publish(b"t", b"x"), publish(b"u", b"x", qos=2, packet_id=7))
    durable.send(publish(b"t", b"x", qos=1, packet_id=5), publish(b"t", b"x", qos=1, packet_id=8))
    world.client(b"q").send(publish(b"t", b"x", qos=2, packet_id=9))
    log = ExactLog(world.broker)
    assert [found[:2] for found in log.find_from(0)] == [(b"p", 5), (b"p", 7)]
    assert log.count_from(0) == 3
    end = world.broker.end_place
    durable.send(publish(b"t", b"x", qos=2, packet_id=11))
    assert log.find_from(end) == [(b"p", 11, end)]
