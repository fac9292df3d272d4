from __future__ import annotations

import pytest

from gateway.auth.authenticator import SLOW_CHECKS_MAX, Authenticator, is_loopback
from gateway.auth.users import hash_password
from gateway.settings import AuthSettings, SettingsError

HERE = "127.0.0.1:40000"
FAR = "192.0.2.7:40000"


class Clock:
    def __init__(self):
        self.ms = 1_000_000

    def now_ms(self):
        return self.ms


def _authenticator(environment=None, **settings):
    return Authenticator(AuthSettings.model_validate(settings), environment or {}, Clock())


@pytest.fixture(scope="module")
def kept():
    return hash_password("secret")


def test_anonymous_clients_come_in_where_the_settings_say_so():
    auth = _authenticator()
    assert auth.authenticate("mqtt", None, None, FAR).user == ""
    assert auth.authenticate("rocketmq", None, None, FAR).user == ""
    assert auth.authenticate("amqp", None, None, HERE) is None
    closed = _authenticator(mqtt_anonymous=False, rocketmq_anonymous=False)
    assert closed.authenticate("mqtt", None, None, HERE) is None
    assert closed.authenticate("rocketmq", None, None, HERE) is None


def test_guest_comes_in_by_amqp_from_this_machine_only():
    auth = _authenticator()
    assert auth.authenticate("amqp", "guest", b"guest", HERE).user == "guest"
    assert auth.authenticate("amqp", "guest", b"guest", "[::1]:5") is not None
    assert auth.authenticate("amqp", "guest", b"other", HERE) is None
    assert auth.authenticate("amqp", "guest", b"guest", FAR) is None
    assert auth.authenticate("mqtt", "guest", b"guest", HERE) is None
    assert _authenticator(amqp_guest=False).authenticate("amqp", "guest", b"guest", HERE) is None


def test_user_of_the_settings_comes_in_with_the_right_password_and_its_rights(kept):
    auth = _authenticator(users={"alice": {"password_hash": kept, "may_publish": False}})
    identity = auth.authenticate("mqtt", "alice", b"secret", FAR)
    assert identity.user == "alice"
    assert not identity.may.may_publish(b"a")
    assert auth.authenticate("mqtt", "alice", b"wrong", FAR) is None
    assert auth.authenticate("mqtt", "alice", None, FAR) is None
    assert auth.authenticate("mqtt", "bob", b"secret", FAR) is None


def test_password_may_stand_in_the_environment():
    auth = _authenticator({"PASSWORD": "secret"}, users={"alice": {"password_env": "PASSWORD"}})
    assert auth.authenticate("amqp", "alice", b"secret", FAR) is not None


@pytest.mark.parametrize("user", [{}, {"password_env": "NOT_THERE"}, {"password_hash": "secret"}])
def test_user_without_a_password_that_can_be_checked_is_a_wrong_setting(user):
    with pytest.raises(SettingsError, match=r"auth\.users\.alice"):
        _authenticator(users={"alice": user})


def test_guesser_is_held_off_by_address_and_others_are_not():
    auth = _authenticator({"PASSWORD": "secret"}, users={"alice": {"password_env": "PASSWORD"}})
    for number in range(SLOW_CHECKS_MAX):
        assert auth.authenticate("mqtt", "alice", b"%d" % number, FAR) is None
    assert auth.authenticate("mqtt", "alice", b"secret", FAR) is None
    assert auth.authenticate("mqtt", "alice", b"secret", HERE) is not None
    assert auth.authenticate("mqtt", "alice", b"secret", FAR) is not None  # right, and known by now
    auth._clock.ms += 60_000
    assert auth.authenticate("mqtt", "alice", b"wrong", FAR) is None


def test_open_ways_in_are_said():
    assert len(_authenticator().describe()) == 3
    assert _authenticator(mqtt_anonymous=False, rocketmq_anonymous=False, amqp_guest=False).describe() == []


@pytest.mark.parametrize(
    ("peer", "is_here"),
    [
        ("127.0.0.1:1", True),
        ("127.8.8.8:1", True),
        ("[::1]:1", True),
        ("[::ffff:127.0.0.1]:1", True),
        ("10.0.0.1:1", False),
        ("", False),
        ("host:1", False),
    ],
)
def test_loopback_peers_are_known(peer, is_here):
    assert is_loopback(peer) is is_here
