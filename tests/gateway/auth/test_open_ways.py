from __future__ import annotations

import pytest

from gateway.auth.credentials import Credentials
from gateway.auth.open_ways import OpenWays
from gateway.settings.models import AuthSettings

HERE = "127.0.0.1:40000"
DOORS = ("mqtt", "amqp", "rocketmq")


def ways(**settings):
    return OpenWays(AuthSettings.model_validate(settings))


def test_open_ways_in_are_said():
    said = ways().describe(DOORS)
    assert len(said) == 3
    assert "behind_proxy" in said[2]
    assert len(ways(behind_proxy=True).describe(DOORS)) == 2
    assert ways(mqtt_anonymous=False, rocketmq_anonymous=False, amqp_guest=False).describe(DOORS) == []


def test_nothing_is_said_of_doors_that_are_off():
    (said,) = ways().describe(["rocketmq"])
    assert said.startswith("RocketMQ")


def test_anonymous_clients_come_in_where_the_settings_say_so():
    assert [ways().lets_anonymous_in(door) for door in DOORS] == [True, False, True]
    closed = ways(mqtt_anonymous=False, rocketmq_anonymous=False)
    assert [closed.lets_anonymous_in(door) for door in DOORS] == [False, False, False]


@pytest.mark.parametrize(
    ("credentials", "is_guest"),
    [
        (("amqp", "guest", b"guest", HERE), True),
        (("amqp", "guest", b"guest", "192.0.2.7:5"), False),
        (("amqp", "guest", b"other", HERE), False),
        (("amqp", "bob", b"guest", HERE), False),
        (("mqtt", "guest", b"guest", HERE), False),
    ],
)
def test_guest_comes_by_amqp_from_this_machine_with_the_usual_password(credentials, is_guest):
    assert ways().is_guest(Credentials(*credentials)) is is_guest
    assert not ways(behind_proxy=True).is_guest(Credentials(*credentials))
    assert not ways(amqp_guest=False).is_guest(Credentials(*credentials))


def test_questions_of_this_machine_are_answered_without_a_login():
    assert ways().lets_look(HERE)
    assert not ways().lets_look("192.0.2.7:5")
    assert not ways(behind_proxy=True).lets_look(HERE)
    assert not ways(admin_anonymous=False).lets_look(HERE)
