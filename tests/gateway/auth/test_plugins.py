from __future__ import annotations

import asyncio
import time

import jwt
import pytest

from gateway.auth.plugins import HostedSession, PluginError, PluginHost
from tests.support.amqtt_plugins import OwnPlugin

pytestmark = pytest.mark.asyncio

OWN = "tests.support.amqtt_plugins.OwnPlugin"
ODD = "tests.support.amqtt_plugins.OddPlugin"


@pytest.fixture
def host():
    made = []

    def make(plugins):
        made.append(PluginHost(plugins, "lmq-plugins-test"))
        return made[-1]

    yield make
    for one in made:
        one.close()
        one.join()


def session(user="ann", password="secret", **more):
    return HostedSession(**{"username": user, "password": password, "client_id": "c1", "remote_address": "::1", **more})


async def test_plugin_of_ones_own_is_made_and_asked_on_a_thread_and_loop_of_its_own(host):
    OwnPlugin.events.clear()
    plugins = host({OWN: {"suffix": "!", "strangers": ["eve"]}})
    assert await plugins.authenticate(session(password="ann!")) is True
    assert await plugins.authenticate(session()) is False
    assert await plugins.authenticate(session("eve")) is None
    plugins.close()
    plugins.join()
    assert OwnPlugin.events == [("made", "lmq-plugins-test", True), "started", *[("c1", "::1")] * 3, "closed"]
    with pytest.raises(PluginError, match="were stopped"):
        await plugins.authenticate(session())


async def test_all_plugins_that_say_anything_have_to_say_yes(host):
    both = host({OWN: {"suffix": "!", "strangers": ["eve"]}, ODD: {}})
    assert await both.authenticate(session(password="ann!")) is True
    assert await both.authenticate(session()) is False
    assert await both.authenticate(session("eve")) is True


@pytest.mark.parametrize("user", ["fails", "rubbish"])
async def test_plugin_that_fails_or_says_something_else_is_told_without_the_password(host, user):
    with pytest.raises(PluginError, match="OddPlugin") as caught:
        await host({ODD: {}}).authenticate(session(user))
    assert "secret" not in str(caught.value)


async def test_plugin_that_hangs_is_given_up_and_the_next_one_is_asked_meanwhile(host):
    plugins = host({ODD: {}})
    began = time.monotonic()
    slow = asyncio.create_task(plugins.authenticate(session("hangs")))
    await asyncio.sleep(0)
    assert await plugins.authenticate(session()) is True
    slow.cancel()
    plugins.close()
    plugins.join()
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("plugins", "why"),
    [
        ({"tests.support.nothing.Plugin": {}}, "cannot be imported"),
        ({"tests.support.amqtt_plugins.Nothing": {}}, "cannot be imported"),
        ({"pathlib.Path": {}}, "not a plugin for amqtt"),
        ({OWN: {}}, "wrong settings.*suffix"),
        ({OWN: {"suffix": "!", "other": 1}}, "wrong settings.*other"),
        ({"tests.support.amqtt_plugins.BadPlugin": {}}, "no such device"),
        ({"tests.support.amqtt_plugins.StartlessPlugin": {}}, "no such device"),
    ],
)
async def test_plugin_that_cannot_be_made_is_told(plugins, why):
    with pytest.raises(PluginError, match=why):
        PluginHost(plugins, "lmq-plugins-test")


# amqtt's own


@pytest.mark.slow
async def test_amqtt_s_file_of_passwords(host, tmp_path):
    hasher = pytest.importorskip("pwdlib").PasswordHash.recommended()
    path = tmp_path / "passwords"
    path.write_text(f"# users\nann:{hasher.hash('secret')}\n")
    plugins = host({"amqtt.plugins.authentication.FileAuthPlugin": {"password_file": str(path)}})
    assert await plugins.authenticate(session()) is True
    assert await plugins.authenticate(session(password="x")) is False
    assert not await plugins.authenticate(session("bob"))


async def test_amqtt_s_anonymous_plugin_says_that_it_vouches_for_nobody(host):
    plugins = host({"amqtt.plugins.authentication.AnonymousAuthPlugin": {}})
    somebody = session()
    assert await plugins.authenticate(somebody) is True
    assert somebody.is_anonymous


@pytest.mark.slow
async def test_amqtt_s_database(host, tmp_path):
    pytest.importorskip("sqlalchemy")
    managers = pytest.importorskip("amqtt.contrib.auth_db.managers")
    said = {"connection": f"sqlite+aiosqlite:///{tmp_path}/users.db", "hash_schemes": ["argon2"], "sync_schema": True}
    plugins = host({"amqtt.contrib.auth_db.UserAuthDBPlugin": said})
    users = managers.UserManager(said["connection"])
    await users.create_user_auth("ann", "secret")
    await users.close()
    assert await plugins.authenticate(session()) is True
    assert await plugins.authenticate(session(password="x")) is False
    assert not await plugins.authenticate(session("bob"))


async def test_amqtt_s_tokens(host):
    pytest.importorskip("sqlalchemy")
    secret = "a secret that is long enough for sha-256"
    plugins = host({"amqtt.contrib.jwt.UserAuthJwtPlugin": {"secret_key": secret, "user_claim": "sub"}})
    assert await plugins.authenticate(session(password=jwt.encode({"sub": "ann"}, secret))) is True
    assert not await plugins.authenticate(session(password=jwt.encode({"sub": "bob"}, secret)))


async def test_amqtt_s_certificates_let_nobody_in_without_one(host):
    pytest.importorskip("sqlalchemy")
    plugins = host({"amqtt.contrib.cert.UserAuthCertPlugin": {"uri_domain": "example.com"}})
    assert await plugins.authenticate(session()) is False
