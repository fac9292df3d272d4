from __future__ import annotations

import pytest

from gateway.commands.mosquitto.bridging import Bridge
from gateway.commands.mosquitto.lines import MosquittoFileError, split_lines
from gateway.settings.bridges import BridgeSettings


def bridge(*lines):
    first, *others = split_lines("\n".join(["connection site 1", *lines]), "m.conf")
    made = Bridge(first)
    for other in others:
        made.say(other)
    return made


def test_bridge_has_its_topics_its_login_and_its_tls():
    made = bridge(
        "addresses cloud.example other.example:1884",
        "bridge_protocol_version mqttv50",
        "remote_clientid gw",
        "remote_username u",
        "remote_password p",
        "keepalive_interval 30",
        "topic a/#",
        'topic b/# both 2 "" there/',
        "topic c in 1 here/",
        "bridge_cafile /ca.pem",
        "bridge_insecure true",
    )
    assert made.table() == {
        "version": "5",
        "address": "cloud.example:1883",
        "client_id": "gw",
        "username": "u",
        "password_env": "BRIDGE_SITE_1_PASSWORD",
        "keep_alive_s": 30,
        "topics": [
            {"filter": "a/#", "direction": "out", "qos": 0},
            {"filter": "b/#", "direction": "both", "qos": 2, "remote_prefix": "there/"},
            {"filter": "c", "direction": "in", "qos": 1, "local_prefix": "here/"},
        ],
        "tls": {"ca": "/ca.pem", "verify": False},
    }
    assert made.hints() == [
        "m.conf:2: other.example:1884: a bridge has one address",
        "m.conf:6: the gateway takes the password from BRIDGE_SITE_1_PASSWORD",
    ]


def test_bridge_speaks_3_1_1_where_nothing_is_said():
    made = bridge("address h:1", "topic a out 1")
    assert BridgeSettings.model_validate(made.table()).version == "3.1.1"
    assert made.hints() == []


def test_names_of_digits_are_texts():
    made = bridge("address h:1", "topic a out 1", "remote_clientid 12", "remote_username 34", "keepalive_interval 30")
    found = BridgeSettings.model_validate({**made.table(), "password_env": "X"})
    assert (found.client_id, found.username, found.keep_alive_s) == ("12", "34", 30)


def test_bridge_without_an_address_is_told_with_its_line():
    with pytest.raises(MosquittoFileError, match=r"m\.conf:2: address: not valid"):
        bridge("address")


@pytest.mark.parametrize("topic", ["a sideways", "a out 3", "'a", '"" in'])
def test_topic_that_is_none_is_told_with_its_line(topic):
    with pytest.raises(MosquittoFileError, match=r"m\.conf:2: "):
        bridge(f"topic {topic}")
