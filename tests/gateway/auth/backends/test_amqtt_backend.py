from __future__ import annotations

import asyncio
import datetime as dt

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from gateway.auth.backends.amqtt_backend import AmqttBackend
from gateway.auth.backends.question import NO, NOT_MINE, BackendError, Question, Verdict
from gateway.auth.topic_rights import TopicQuestion
from gateway.settings.backends import AmqttBackendSettings
from gateway.settings.models import SettingsError
from tests.support.amqtt_plugins import OwnPlugin
from tests.support.http_server import HttpServer
from tests.support.slapd import ADMIN, PEOPLE, SLAPD, Slapd

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


def certify(uri):
    """Return a certificate, in DER, that names a device as amqtt has it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "device")])
    now = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    built = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + dt.timedelta(1))
    built = built.add_extension(x509.SubjectAlternativeName([x509.UniformResourceIdentifier(uri)]), critical=False)
    return built.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


async def test_amqtt_s_plugin_for_certificates_sees_the_client_s():
    pytest.importorskip("sqlalchemy")  # amqtt's contrib asks for it
    backend = make({"amqtt.contrib.cert.UserAuthCertPlugin": {"uri_domain": "plant.example"}})
    assert backend.sees_certificates
    own = certify("spiffe://plant.example/device/c1")
    other = certify("spiffe://plant.example/device/c2")
    assert (await backend.ask(ANN._replace(certificate=own))).verdict is Verdict.YES
    assert await backend.ask(ANN._replace(certificate=other)) == NO
    assert await backend.ask(ANN) == NO
    assert len({backend.key(ANN._replace(certificate=one)) for one in (b"", own, other)}) == 3
    backend.close()


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


@pytest.mark.skipif(SLAPD is None, reason="slapd is not installed")
async def test_amqtt_s_ldap_plugins_ask_a_directory(tmp_path):
    pytest.importorskip("ldap", reason="python-ldap is not installed")
    with Slapd(tmp_path) as directory:
        said = {
            "server": directory.url,
            "base_dn": PEOPLE,
            "user_attribute": "uid",
            "bind_dn": ADMIN,
            "bind_password": "admin-secret",
        }
        attributes = {f"{action}_attribute": "departmentNumber" for action in ("publish", "subscribe", "receive")}
        plugins = {"UserAuthLdapPlugin": said, "TopicAuthLdapPlugin": {**said, **attributes}}
        backend = make({f"amqtt.contrib.ldap.{name}": settings for name, settings in plugins.items()})
        assert (await backend.ask(ANN._replace(password="secret"))).verdict is Verdict.YES
        assert await backend.ask(ANN._replace(password="other")) == NO
        assert await backend.ask(ANN._replace(user="nobody")) == NO
        question = TopicQuestion("ann", "c1", "", "publish", b"plant")
        assert await backend.ask_topic(question)
        assert await backend.ask_topic(question._replace(action="subscribe", topic=b"office"))
        assert not await backend.ask_topic(question._replace(topic=b"plant/1"))
        backend.close()
