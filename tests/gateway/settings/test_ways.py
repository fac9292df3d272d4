from __future__ import annotations

import pytest
from pydantic import ValidationError

from gateway.settings.backends import HttpBackendSettings
from gateway.settings.listen import ListenSettings
from gateway.settings.models import GatewaySettings
from gateway.settings.ways import find_names, find_open, find_unknown

PLANT = HttpBackendSettings(kind="http", url="http://localhost/", name="plant")
OTHER = HttpBackendSettings(kind="http", url="http://localhost/")
JWT = {"algorithms": ["HS256"], "secret": "s" * 32}


def entry(*names, address="h:1", **more):
    return ListenSettings(address=address, authenticators=names, **more)


@pytest.mark.parametrize(
    ("door", "expected"),
    [
        ("mqtt", ["certificate", "users", "jwt", "backends", "anonymous", "plant", "http"]),
        ("amqp", ["certificate", "users", "jwt", "backends", "guest", "plant", "http"]),
        ("rocketmq", ["certificate", "users", "anonymous"]),
        ("admin", ["users", "jwt", "backends", "api_tokens", "guest", "anonymous", "plant", "http"]),
    ],
)
def test_names_are_those_of_the_door_and_of_the_back_ends_that_there_are(door, expected):
    assert find_names(door, [PLANT, OTHER, OTHER], has_tokens=True) == expected


def test_what_is_not_set_up_has_no_name():
    assert find_names("mqtt", [], has_tokens=False) == ["certificate", "users", "anonymous"]
    assert find_unknown({"mqtt.listen": [entry("users")]}, [], has_tokens=False) is None
    assert find_unknown({"mqtt.listen": "h:1", "amqp.listen": "off"}, [], has_tokens=False) is None
    assert find_unknown({"rocketmq.broker": [entry("jwt")]}, [], has_tokens=True) == (
        "authenticators of rocketmq.broker h:1 names 'jwt', which is none here: there are certificate, users, anonymous"
    )


@pytest.mark.parametrize(
    ("listen", "lets", "said"),
    [
        ("0.0.0.0:1", True, "auth.mqtt_anonymous lets everybody in who reaches 0.0.0.0:1"),
        ("0.0.0.0:1", False, None),
        ("off", True, None),
        ([entry("users", address="0.0.0.0:1")], True, None),
        (
            [entry("users", "anonymous", address="0.0.0.0:1")],
            False,
            "'anonymous' among the authenticators of 0.0.0.0:1 lets everybody in who reaches 0.0.0.0:1",
        ),
        ([entry("anonymous", address="127.0.0.1:1")], False, None),
    ],
)
def test_what_lets_everybody_in_from_elsewhere_is_the_setting_or_the_listener(listen, lets, said):
    assert find_open(listen, "auth.mqtt_anonymous", lets=lets) == said


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"mqtt": {"listen": [{"address": "127.0.0.1:1", "authenticators": ["user"]}]}},
            "names 'user', which is none here: there are certificate, users, anonymous",
        ),
        ({"admin": {"listen": [{"address": "127.0.0.1:1", "authenticators": ["jwt"]}]}}, "'jwt', which is none here"),
        ({"amqp": {"listen": [{"address": "127.0.0.1:1", "authenticators": ["anonymous"]}]}}, "there are certificate,"),
        ({"mqtt": {"listen": [{"address": "127.0.0.1:1", "authenticators": ["certificate"]}]}}, "need one another"),
        (
            {"mqtt": {"listen": [{"address": "0.0.0.0:1", "authenticators": ["anonymous"]}]}},
            "'anonymous' among the authenticators of 0.0.0.0:1 lets everybody in",
        ),
        ({"auth": {"backends": [{"kind": "http", "url": "http://h/", "name": "users"}]}}, "users is another way in"),
        ({"auth": {"backends": [{"kind": "http", "url": "http://h/", "name": "A b"}]}}, "auth.backends"),
    ],
)
def test_settings_that_say_so_are_refused(settings, said):
    with pytest.raises(ValidationError) as caught:
        GatewaySettings.model_validate(settings)
    assert said in str(caught.value)


def test_settings_that_go_together_are_taken():
    certified = {"certificate": "a", "client_ca": "b", "user_from": "dns"}
    listen = [
        {"address": "0.0.0.0:1", "authenticators": ["certificate", "jwt", "plant"], "tls": certified},
        {"address": "127.0.0.1:2", "authenticators": ["users", "anonymous"]},
    ]
    auth = {"jwt": JWT, "backends": [{"kind": "http", "url": "http://localhost/", "name": "plant"}]}
    settings = GatewaySettings.model_validate({"mqtt": {"listen": listen}, "auth": auth})
    public, own = settings.mqtt.listen
    assert (public.ways, own.ways) == ({"certificate", "jwt", "plant"}, {"users", "anonymous"})
    assert ListenSettings(address="h:1").ways is None
