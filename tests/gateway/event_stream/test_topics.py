from __future__ import annotations

import json

import pytest

from core.reserved import EVENTS_ROOT
from gateway.event_stream.topics import Who, body_of, topic_of
from gateway.events import Actor, Event, Events, Kind


def event(kind, door="mqtt", user="ann", **fields):
    return Event(kind, Actor(Events(), door, 3, "192.0.2.7:5", user), fields)


@pytest.mark.parametrize(
    ("kind", "door", "name"),
    [
        (Kind.LOGIN, "mqtt", "client_connected"),
        (Kind.CONNECTION_CLOSED, "mqtt", "client_disconnected"),
        (Kind.SUBSCRIBED, "mqtt", "session_subscribed"),
        (Kind.LOGIN, "amqp", "user_authentication_success"),
        (Kind.QUEUE_CREATED, "amqp", "queue_created"),
    ],
)
def test_a_kind_has_a_topic(kind, door, name):
    assert topic_of(event(kind, door)) == EVENTS_ROOT + name.encode()


def test_every_kind_has_a_topic_of_its_own():
    topics = [topic_of(event(kind)) for kind in Kind]
    assert len(set(topics)) == len(Kind)


def test_the_body_says_what_happened_and_by_whose_doing():
    body = json.loads(body_of(event(Kind.CONNECTION_CLOSED, user="", reason="é"), Who("meter", "ann"), 1_000))
    assert body == {
        "event": "connection.closed",
        "timestamp": 1_000,
        "door": "mqtt",
        "conn": 3,
        "peername": "192.0.2.7:5",
        "reason": "é",
        "username": "ann",
        "clientid": "meter",
    }


def test_a_value_that_json_has_no_word_for_is_told_as_text():
    assert json.loads(body_of(event(Kind.CHANGED, path=EVENTS_ROOT, bad="\udc80"), None, 0))["bad"] == "?"
