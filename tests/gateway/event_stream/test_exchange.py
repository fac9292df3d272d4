from __future__ import annotations

from hypothesis import given, strategies as st
from pamqp.commands import Basic

from gateway.amqp.property_block import BlockReader
from gateway.event_stream.exchange import block_of, headers_of
from gateway.event_stream.topics import Who
from gateway.events import Actor, Event, Events, Kind


def event(**fields):
    return Event(Kind.QUEUE_CREATED, Actor(Events(), "amqp", 3, "192.0.2.7:5672", "ann"), fields)


def test_headers_have_rabbitmqs_names():
    assert headers_of(event(name="work", vhost="/", durable=True), Who("shop", "ann"), 1_000) == {
        "timestamp_in_ms": 1_000,
        "protocol": "amqp",
        "user_who_performed_action": "ann",
        "peer_host": "192.0.2.7",
        "peer_port": 5672,
        "connection_name": "192.0.2.7:5672",
        "conn": 3,
        "client": "shop",
        "name": "work",
        "vhost": "/",
        "durable": True,
    }


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.text(max_size=40) | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(["name", "arguments", "reason"]), VALUES))
def test_whatever_is_told_makes_a_block_that_the_door_takes(fields):
    block = block_of(event(**fields), None, 1_700_000_000_000)
    BlockReader().read(block, 0, len(block))
    read = Basic.Properties()
    read.unmarshal(int.from_bytes(block[:2], "big"), block[2:])
    assert read.headers["protocol"] == "amqp"
    assert read.delivery_mode == 2
