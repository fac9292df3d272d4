"""What is written down of a login counts after a restart as long as what vouched for it still does."""

from __future__ import annotations

import asyncio
import json

import pytest

from gateway.auth.authenticator import Authenticator
from gateway.auth.backends.chain import make_question
from gateway.auth.backends.question import Reply, Verdict
from gateway.auth.credentials import Credentials, Identity, Refusal
from gateway.auth.left_logins import find_left, pack_login
from gateway.auth.tokens import NEVER_MS
from gateway.settings.models import AuthSettings
from gateway.settings.rules import RuleSettings
from tests.support import tokens
from tests.support.backends import JudgeBackend, ScriptedBackend
from tests.support.http_server import HttpServer
from tests.support.logins import HandClock, HandWork, quick_hash

NOW_MS = 1_790_000_000_000
ANN = Credentials("mqtt", "ann", b"secret", "192.0.2.7:40000", client="c")
PLANT = {"permit": "allow", "groups": ["plant"], "topics": ["plant/#"]}
JWT = {"algorithms": ["HS256"], "secret": tokens.SECRET, "groups_claim": "groups"}


class Site:
    """A gateway's logins; `restart` is another process with the settings that it is given."""

    def __init__(self, *backends, **auth):
        self.now_ms = NOW_MS
        self.restart(*backends, **auth)

    def restart(self, *backends, **auth):
        said = {"mqtt_anonymous": False, "default": "deny", "rules": [PLANT], **auth}
        self.auth_settings = AuthSettings.model_validate(said)
        self.auth = Authenticator(self.auth_settings, {}, HandClock(lambda: self.now_ms), HandWork())
        self.auth.backends.use(backends)

    def log_in_by_backend(self, reply):
        (backend,) = self.auth.backends.all
        question = Credentials("mqtt", "ann", b"secret", ANN.peer, client="c")
        token = backend.vouch(make_question(question), reply)
        return self.auth.let_in_by(token, question)

    def find(self, login, who=ANN):
        return find_left(self.auth, who._replace(password=None), login)


def plant_backend(**settings):
    return ScriptedBackend(lambda question: Reply(Verdict.YES, ("plant",)), **settings)


def test_user_of_a_back_end_has_its_groups_again():
    site = Site(plant_backend())
    login = pack_login(site.log_in_by_backend(Reply(Verdict.YES, ("plant",))))
    site.restart(plant_backend())
    found = site.find(login)
    assert isinstance(found, Identity)
    assert (found.user, found.token.groups, found.token.tags) == ("ann", ("plant",), ())
    assert found.may.may_publish(b"plant/1")
    assert not found.may.may_publish(b"other/1")


def test_rules_that_a_back_end_gave_count_again():
    rules = (RuleSettings(permit="allow", topics=("own/%c/#",)),)
    site = Site(plant_backend())
    login = pack_login(site.log_in_by_backend(Reply(Verdict.YES, rules=rules)))
    site.restart(plant_backend())
    may = site.find(login).may
    assert (may.may_publish(b"own/c/1"), may.may_publish(b"own/d/1"), may.may_publish(b"plant/1")) == (
        True,
        False,
        False,
    )


def test_nobody_vouches_any_more_where_the_back_end_is_another_or_the_login_has_ended():
    site = Site(plant_backend())
    login = pack_login(site.log_in_by_backend(Reply(Verdict.YES, ("plant",), NOW_MS + 5_000)))
    site.restart(plant_backend())
    assert isinstance(site.find(login), Identity)
    site.now_ms += 5_000
    assert site.find(login) is Refusal.WRONG
    site.now_ms = NOW_MS
    site.restart(plant_backend(groups=("more",)))
    assert site.find(login) is Refusal.WRONG
    site.restart()
    assert site.find(login) is Refusal.WRONG


def test_name_that_is_a_user_of_the_gateway_now_is_not_the_back_ends_to_give():
    site = Site(plant_backend())
    login = pack_login(site.log_in_by_backend(Reply(Verdict.YES, ("plant",))))
    site.restart(plant_backend(), users={"ann": {"password_hash": quick_hash("x")}})
    assert site.find(login) is Refusal.WRONG


def test_back_end_that_judges_topics_is_the_one_to_be_asked():
    site = Site(JudgeBackend())
    login = pack_login(site.log_in_by_backend(Reply(Verdict.YES, ("plant",))))
    backends = [plant_backend(groups=("more",)), JudgeBackend()]
    site.restart(*backends)
    assert site.find(login).topics.judge is site.auth.backends.all[1]


def test_token_counts_while_its_key_is_there_and_it_has_not_ended():
    pytest.importorskip("jwt")
    site = Site(jwt=JWT)
    found = []
    ends_s = NOW_MS // 1000 + 60
    token = tokens.make({"sub": "ann", "groups": ["plant"], "exp": ends_s})
    site.auth.begin(ANN._replace(password=token), lambda answer, now_ms: found.append(answer))
    login = pack_login(found[0])
    site.restart(jwt=JWT)
    assert site.find(login).may.may_publish(b"plant/1")
    site.restart(jwt={**JWT, "secret": tokens.SECRET[::-1]})
    assert site.find(login) is Refusal.WRONG
    site.restart(jwt=JWT)
    site.now_ms += 120_000
    assert site.find(login) is Refusal.WRONG


def test_users_of_the_gateway_and_anonymous_clients_are_found_by_name():
    users = {"alice": {"password_hash": quick_hash("x"), "groups": ["plant"]}}
    site = Site(users=users)
    found = []
    site.auth.begin(ANN._replace(user="alice", password=b"x"), lambda answer, now_ms: found.append(answer))
    assert pack_login(found[0]) == b""
    assert site.find(b"", ANN._replace(user="alice")).may.may_publish(b"plant/1")
    assert site.find(b"") is Refusal.WRONG
    assert site.find(b"", ANN._replace(user="")) is Refusal.WRONG
    site.restart(mqtt_anonymous=True)
    assert isinstance(site.find(b"", ANN._replace(user="")), Identity)


def test_rules_by_address_are_for_where_the_client_was():
    site = Site(
        users={"alice": {"password_hash": quick_hash("x")}},
        rules=[{"permit": "allow", "addresses": ["192.0.2.0/24"], "topics": ["plant/#"]}],
    )
    alice = ANN._replace(user="alice")
    assert site.find(b"", alice).may.may_publish(b"plant/1")
    assert not site.find(b"", alice._replace(peer="198.51.100.7:1")).may.may_publish(b"plant/1")


def test_login_with_rules_that_are_not_understood_is_none():
    site = Site(plant_backend())
    login = json.loads(pack_login(site.log_in_by_backend(Reply(Verdict.YES))))
    site.restart(plant_backend())
    assert login["ends_at_ms"] == NEVER_MS
    assert isinstance(site.find(json.dumps(login).encode()), Identity)
    login["rules"] = [{"permit": "perhaps"}]
    assert site.find(json.dumps(login).encode()) is Refusal.WRONG


@pytest.mark.asyncio
async def test_token_by_a_key_set_that_is_still_to_come_is_neither_right_nor_wrong():
    keys = pytest.importorskip("gateway.auth.token_keys")
    gate = asyncio.Event()

    async def tell(asked):
        await gate.wait()
        return json.dumps({"keys": [tokens.public_jwk("ES256", kid="1")]})

    async with HttpServer(tell) as server:
        said = {"algorithms": ["ES256"], "jwks_url": server.url, "groups_claim": "groups"}
        site = Site(jwt=said)
        site.auth.tokens.start(site.auth_settings.jwt)
        known = keys.TokenKeys(
            site.auth_settings.jwt, b"", json.dumps({"keys": [tokens.public_jwk("ES256", kid="1")]}).encode()
        )
        (mark,) = known.marks
        login = json.dumps({"mark": mark.hex(), "ends_at_ms": NEVER_MS, "groups": ["plant"], "rules": []}).encode()
        assert site.find(login) is Refusal.BUSY
        gate.set()
        async with asyncio.timeout(10):
            while site.auth.tokens.is_waiting:
                await asyncio.sleep(0)
        assert site.find(login).may.may_publish(b"plant/1")
        site.auth.tokens.stop()
