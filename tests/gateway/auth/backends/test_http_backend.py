from __future__ import annotations

import pytest

from gateway.auth.backends.http_backend import HttpBackend
from gateway.auth.backends.question import NO, Question, Verdict
from gateway.settings.backends import HttpBackendSettings
from gateway.settings.models import SettingsError
from tests.support.http_server import HttpServer

pytestmark = pytest.mark.asyncio

ANN = Question("mqtt", "ann&x=y", "sécret ${username}", "client/1", "192.0.2.7")


def make(url, environment=None, **said):
    return HttpBackend(HttpBackendSettings(kind="http", url=url, **said), environment or {})


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ({}, "application/x-www-form-urlencoded"),
        ({"encoding": "json"}, "application/json"),
        ({"method": "get"}, None),
    ],
)
async def test_server_is_told_who_it_is_as_form_as_json_or_in_the_address(said, kind):
    async with HttpServer(lambda asked: "allow") as server:
        backend = make(server.url, **said)
        assert (await backend.ask(ANN)).verdict is Verdict.YES
        (asked,) = server.asked
        assert asked.fields == {"username": ANN.user, "password": ANN.password, "client_id": "client/1"}
        assert asked.headers.get("content-type") == kind
        backend.close()


async def test_fields_are_the_settings_to_choose_and_the_answer_depends_on_them_alone():
    fields = {"u": "${username}@${protocol}", "p": "${password}", "from": "${peerhost}"}
    async with HttpServer(lambda asked: "deny") as server:
        backend = make(server.url, fields=fields)
        assert await backend.ask(ANN) == NO
        assert server.asked[0].fields == {"u": "ann&x=y@mqtt", "p": ANN.password, "from": "192.0.2.7"}
        assert backend.key(ANN) == backend.key(ANN._replace(client="other"))
        assert backend.key(ANN) != backend.key(ANN._replace(host="192.0.2.8"))
        backend.close()


async def test_headers_come_from_the_settings_and_the_environment():
    async with HttpServer(lambda asked: "allow") as server:
        backend = make(server.url, {"KEY": "Bearer k"}, headers={"X-Site": "7"}, authorization_env="KEY")
        await backend.ask(ANN)
        assert server.asked[0].headers["x-site"] == "7"
        assert server.asked[0].headers["authorization"] == "Bearer k"
        backend.close()


@pytest.mark.parametrize("environment", [{}, {"KEY": ""}, {"KEY": "a\nb: c"}, {"KEY": "ü"}])
async def test_header_that_is_not_in_the_environment_is_a_wrong_setting(environment):
    with pytest.raises(SettingsError, match="KEY"):
        make("http://x/", environment, authorization_env="KEY")
