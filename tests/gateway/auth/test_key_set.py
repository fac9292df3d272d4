from __future__ import annotations

import asyncio
import json

import pytest

from gateway.auth import key_set
from gateway.auth.authenticator import Authenticator
from gateway.auth.credentials import Credentials, Identity, Refusal
from gateway.auth.key_set import AGAIN_MS, SET_BYTES_MAX, KeySet
from gateway.settings.jwt import JwtSettings
from gateway.settings.models import AuthSettings, SettingsError
from tests.support.http_server import HttpServer
from tests.support.logins import HandClock, HandWork
from tests.support.tokens import make, public_jwk
from tests.support.waiting import until

pytestmark = pytest.mark.asyncio


def keys(*names):
    return json.dumps({"keys": [public_jwk("ES256" if name == "a" else "EdDSA", kid=name) for name in names]})


def token(name, **claims):
    return make({"sub": "ann", "exp": 2_000, **claims}, "ES256" if name == "a" else "EdDSA", kid=name)


def settings(server, **more):
    return JwtSettings.model_validate({"algorithms": ["ES256", "EdDSA"], "jwks_url": server.url, **more})


class Site:
    """A key set whose bytes come into `taken`."""

    def __init__(self, server, **more):
        self.now_ms = 1_000_000
        self.taken = []
        self.set = KeySet(settings(server, **more), HandClock(lambda: self.now_ms), self.take)

    def take(self, fetched):
        json.loads(fetched)
        self.taken.append(fetched)

    async def ask(self):
        """Ask once more, as after a while."""
        self.now_ms += AGAIN_MS
        done = asyncio.Event()
        assert self.set.ask(done.set)
        await done.wait()


async def stop(what):
    what.stop()
    for _ in range(5):  # connections end
        await asyncio.sleep(0)


async def test_set_is_asked_for_at_the_start_and_by_what_was_answered_before():
    def answer(asked):
        if asked.headers.get("if-none-match") == '"1"':
            return 304, {"ETag": '"1"'}, ""
        return 200, {"ETag": '"1"'}, "[1]"

    async with HttpServer(answer) as server:
        site = Site(server)
        site.set.start()
        await until(lambda: site.taken)
        await site.ask()
        assert site.taken == [b"[1]"]
        assert len(server.asked) == 2
        server.answer = lambda asked: "[2]"
        await site.ask()
        assert site.taken == [b"[1]", b"[2]"]
        await stop(site.set)


@pytest.mark.parametrize(
    "answer",
    [
        "rubbish",
        "",
        (404, {}, "[2]"),
        (500, {}, "[2]"),
        (302, {"Location": "http://x/"}, "[2]"),
        (304, {}, ""),
        "x" * (SET_BYTES_MAX + 1),
        None,
    ],
    ids=["rubbish", "empty", "404", "500", "302", "304", "huge", "closed"],
)
async def test_failure_keeps_the_last_set_that_was_good_and_is_logged(answer, caplog):
    async with HttpServer(lambda asked: "[1]") as server:
        site = Site(server)
        site.set.start()
        await until(lambda: site.taken)
        site.set._take = _parse
        server.answer = lambda asked: answer
        await site.ask()
        assert site.taken == [b"[1]"]
        assert len([line for line in caplog.messages if "the last ones stay" in line]) == 1
        await stop(site.set)


def _parse(fetched):
    try:
        json.loads(fetched)
    except ValueError as error:
        raise SettingsError("not JSON") from error


@pytest.mark.parametrize(
    ("header", "delay_s"),
    [("", 600), ("max-age=300", 300), ("public, max-age=5", 60), ("max-age=86400", 600), ("no-cache", 600)],
)
async def test_set_is_asked_for_again_as_the_server_says_within_bounds(header, delay_s):
    async with HttpServer(lambda asked: (200, {"Cache-Control": header} if header else {}, "[1]")) as server:
        site = Site(server, jwks_refresh_s=600)
        assert await site.set._ask() == delay_s
        await stop(site.set)
    assert [await site.set._ask() for _ in range(6)] == [1, 2, 5, 10, 30, 30]
    await stop(site.set)


async def test_set_is_asked_for_again_by_itself(monkeypatch):
    monkeypatch.setattr(key_set, "RETRY_S", (0,))
    answers = [(500, {}, ""), (500, {}, ""), "[1]"]
    async with HttpServer(lambda asked: answers.pop(0)) as server:
        site = Site(server)
        site.set.start()
        await until(lambda: site.taken)
        assert len(server.asked) == 3
        await stop(site.set)


async def test_names_of_keys_that_nobody_has_do_not_make_it_ask_all_the_time():
    async with HttpServer(lambda asked: "[1]") as server:
        site = Site(server)
        assert not site.set.may_ask()
        site.set.start()
        first = []
        assert site.set.ask(lambda: first.append(1))  # it is being asked for
        await until(lambda: first)
        assert not site.set.may_ask()
        assert not site.set.ask(first.clear)
        site.now_ms += AGAIN_MS
        both = []
        assert site.set.ask(lambda: both.append(1))
        assert site.set.ask(lambda: both.append(2))
        await until(lambda: both)
        assert both == [1, 2]
        assert len(server.asked) == 2
        await stop(site.set)


async def test_server_that_gives_no_answer_is_not_waited_for_longer(monkeypatch):
    monkeypatch.setattr(key_set, "TIMEOUT_S", 0.01)
    async with HttpServer(lambda asked: asyncio.sleep(60)) as server:
        site = Site(server)
        async with asyncio.timeout(10):
            assert await site.set._ask() == 1
        await stop(site.set)


async def test_only_so_many_wait_for_it(monkeypatch):
    monkeypatch.setattr(key_set, "WAITING_MAX", 2)
    async with HttpServer(lambda asked: asyncio.sleep(60)) as server:
        site = Site(server)
        site.set.start()
        told = []
        assert [site.set.ask(lambda: told.append(1)) for _ in range(3)] == [True, True, False]
        site.set.stop()
        assert told == [1, 1]
        await stop(site.set)


async def test_those_that_wait_are_told_when_it_stops():
    async with HttpServer(lambda asked: asyncio.sleep(60)) as server:
        site = Site(server)
        site.set.start()
        told = []
        site.set.ask(lambda: told.append(1))
        site.set.stop()
        assert told == [1]
        await stop(site.set)
        assert not site.set.may_ask()


# Logins


class Gate:
    """An authenticator whose keys are on the web."""

    def __init__(self, server, **more):
        self.now_ms = 1_000_000
        self.jwt = settings(server, **more)
        said = AuthSettings(mqtt_anonymous=False, jwt=self.jwt)
        self.work = HandWork()
        self.auth = Authenticator(said, {}, HandClock(lambda: self.now_ms), self.work)
        self.changes = 0
        self.auth.on_changed = self._note
        self.auth.tokens.start(self.jwt)

    def _note(self):
        self.changes += 1

    def begin(self, password, answers):
        who = Credentials("mqtt", None, password, "192.0.2.7:1")
        return self.auth.begin(who, lambda answer, _: answers.append(answer))

    async def user(self, password):
        answers = []
        self.begin(password, answers)
        await until(lambda: answers)
        return answers[0].user if isinstance(answers[0], Identity) else answers[0]


async def test_token_comes_in_by_a_key_of_the_set_which_it_waits_for():
    async with HttpServer(lambda asked: keys("a")) as server:
        gate = Gate(server)
        assert await gate.user(token("a")) == "ann"
        assert await gate.user(token("b")) is Refusal.WRONG  # it was asked for just now
        assert len(server.asked) == 1
        await stop(gate.auth.tokens)


async def test_key_that_is_new_is_asked_for_and_one_that_is_gone_ends_its_connections():
    async with HttpServer(lambda asked: keys("a")) as server:
        gate = Gate(server)
        await gate.user(token("a"))
        answers = []
        gate.begin(token("a"), answers)
        assert gate.auth.may_stay("mqtt", answers[0])
        server.answer = lambda asked: keys("b")
        gate.now_ms += AGAIN_MS
        assert await gate.user(token("b")) == "ann"
        assert gate.changes == 1
        assert not gate.auth.may_stay("mqtt", answers[0])
        await stop(gate.auth.tokens)


async def test_server_that_is_down_lets_nobody_in_and_keeps_who_is_in():
    async with HttpServer(lambda asked: keys("a")) as server:
        gate = Gate(server)
        assert await gate.user(token("a")) == "ann"
        server.answer = lambda asked: (500, {}, "")
        gate.now_ms += AGAIN_MS
        assert await gate.user(token("b")) is Refusal.WRONG
        assert await gate.user(token("a")) == "ann"
        await stop(gate.auth.tokens)
        none = Gate(server)
        assert await none.user(token("a")) is Refusal.BUSY
        await stop(none.auth.tokens)


async def test_login_that_is_cancelled_while_it_waits_is_not_answered():
    may_answer = asyncio.Event()

    async def answer(asked):
        await may_answer.wait()
        return keys("a")

    async with HttpServer(answer) as server:
        gate = Gate(server)
        answers = []
        attempt = gate.begin(token("a"), answers)
        await until(lambda: server.asked)
        gate.auth.cancel(attempt)
        may_answer.set()
        assert await gate.user(token("a")) == "ann"
        assert answers == []
        await stop(gate.auth.tokens)


async def test_set_stays_over_settings_that_are_read_again_and_goes_with_another_address():
    async with HttpServer(lambda asked: keys("a")) as server:
        gate = Gate(server)
        assert await gate.user(token("a")) == "ann"
        server.answer = lambda asked: asyncio.sleep(60)
        for more, user in (({"leeway_s": 0}, "ann"), ({"algorithms": ["EdDSA"]}, None)):
            jwt = settings(server, **more)
            ways = gate.auth.read(AuthSettings(jwt=jwt), {})
            gate.auth.use(ways)
            gate.auth.tokens.start(jwt)
            answers = []
            gate.begin(token("a"), answers)
            assert [getattr(answer, "user", None) for answer in answers] == [user]
        await stop(gate.auth.tokens)


async def test_certificates_that_cannot_be_read_are_a_wrong_setting(tmp_path):
    said = {"algorithms": ["ES256"], "jwks_url": "https://x/", "jwks_ca": tmp_path / "none.pem"}
    with pytest.raises(SettingsError):
        Authenticator(AuthSettings.model_validate({"jwt": said}), {}, HandClock(lambda: 0), HandWork())
