from __future__ import annotations

import asyncio

import pytest

from gateway.auth.backends.amqtt_backend import AmqttBackend
from gateway.auth.backends.question import NO, NOT_MINE, BackendError, Question, Verdict
from gateway.auth.topic_rights import TopicQuestion
from gateway.backend_settings import AmqttBackendSettings
from gateway.settings import SettingsError
from tests.support.amqtt_plugins import OwnPlugin
from tests.support.http_server import HttpServer

pytestmark = pytest.mark.asyncio

SUPPORT = "tests.support.amqtt_plugins"
ANN = Question("mqtt", "ann", "ann!", "c1", "[2001:db8::1]")


def make(plugins):
    return AmqttBackend(AmqttBackendSettings(kind="amqtt", plugins=plugins), {})


async def test_answers_are_those_of_the_plugins():
    OwnPlugin.events.clear()
    backend = make({f"{SUPPORT}.OwnPlugin": {"suffix": "!", "strangers": ["eve"]}})
    assert (await backend.ask(ANN)).verdict is Verdict.YES
    assert await backend.ask(ANN._replace(password="x")) == NO
    assert await backend.ask(ANN._replace(user="eve")) == NOT_MINE
    assert ("c1", "2001:db8::1") in OwnPlugin.events
    assert backend.key(ANN) != backend.key(ANN._replace(host="192.0.2.1"))
    backend.close()


async def test_plugin_that_lets_everybody_in_vouches_for_no_name():
    backend = make({"amqtt.plugins.authentication.AnonymousAuthPlugin": {}})
    assert await backend.ask(ANN) == NOT_MINE
    backend.close()


@pytest.mark.filterwarnings("default")  # amqtt has other names for its settings, and no way to give them
async def test_amqtt_s_own_topic_plugins_are_asked_and_all_have_to_say_yes():
    acl = {"publish_acl": {"ann": ["plant/+"]}, "acl": {"ann": ["plant/#"]}}
    backend = make(
        {
            "amqtt.plugins.authentication.AnonymousAuthPlugin": {},
            "amqtt.plugins.topic_checking.TopicAccessControlListPlugin": acl,
            "amqtt.plugins.topic_checking.TopicTabooPlugin": {},
        }
    )
    assert backend.judges_topics

    async def may(action, topic, user="ann"):
        return await backend.ask_topic(TopicQuestion(user, "c1", "[2001:db8::1]", action, topic))

    assert await may("publish", b"plant/1")
    assert not await may("publish", b"plant/1/temp")
    assert await may("subscribe", b"plant/1/temp")
    assert await may("receive", b"any")
    assert not await may("publish", b"plant/1", "bob")
    assert not await may("receive", b"top-secret")  # the other plugin's
    with pytest.raises(BackendError):
        await may("publish", b"\xff")
    backend.close()
    others = make({"amqtt.plugins.authentication.AnonymousAuthPlugin": {}})
    assert not others.judges_topics
    others.close()


async def test_plugin_that_fails_lets_nobody_in_and_one_that_cannot_be_made_is_a_wrong_setting():
    backend = make({f"{SUPPORT}.OddPlugin": {}})
    with pytest.raises(BackendError):
        await backend.ask(ANN._replace(user="fails"))
    backend.close()
    with pytest.raises(SettingsError, match=r"plugins: .*BadPlugin"):
        make({f"{SUPPORT}.BadPlugin": {}})


@pytest.mark.filterwarnings("default")  # aiohttp leaves connections to the collector
async def test_amqtt_s_http_plugin_asks_a_server():
    pytest.importorskip("aiohttp")
    pytest.importorskip("sqlalchemy")

    def tell(asked):
        is_right = asked.fields == {"username": "ann", "password": "ann!", "client_id": "c1"}
        return (200, {"Content-Type": "application/json"}, f'{{"ok": {"true" if is_right else "false"}}}')

    async with HttpServer(tell) as server:
        said = {"host": "127.0.0.1", "port": server.port, "request_method": "post", "user_uri": "/user"}
        backend = make({"amqtt.contrib.http.UserAuthHttpPlugin": said})
        assert (await backend.ask(ANN)).verdict is Verdict.YES
        assert await backend.ask(ANN._replace(password="x")) == NO
        assert [asked.target for asked in server.asked] == ["/user"] * 2
        backend.close()
        await asyncio.to_thread(backend._host.join)
