from __future__ import annotations

import asyncio

import pytest

from gateway.auth.authenticator import Authenticator
from gateway.auth.backends.chain import BackendChain, make_question
from gateway.auth.backends.question import NO, NOT_MINE, BackendError, Reply, Verdict
from gateway.auth.credentials import Credentials, Identity, Refusal
from gateway.auth.tokens import Token
from gateway.settings.models import AuthSettings
from tests.support import tokens
from tests.support.backends import ScriptedBackend
from tests.support.logins import HandClock, HandWork, quick_hash
from tests.support.stores import MemoryTable

pytestmark = pytest.mark.asyncio

YES = Reply(Verdict.YES, ("plant",))
FAR = "192.0.2.7:40000"
ANN = Credentials("mqtt", "ann", b"secret", FAR, client="c")


def fail(question):
    raise BackendError("down")


def say(reply):
    return lambda question: reply


class Site:
    """A chain of scripted back ends."""

    def __init__(self, *answers, **settings):
        self.now_ms = 1_000_000
        self.clock = HandClock(lambda: self.now_ms)
        self.chain = BackendChain(self.clock)
        self.backends = [
            answer if isinstance(answer, ScriptedBackend) else ScriptedBackend(answer, **settings) for answer in answers
        ]
        self.chain.use(self.backends)

    async def ask(self, who=ANN):
        found = asyncio.get_running_loop().create_future()
        self.chain.begin(who, found.set_result, is_stranger_wrong=True)
        return await found


@pytest.mark.parametrize(
    ("answers", "outcome", "asked"),
    [
        ([YES], "ann", 1),
        ([NOT_MINE, YES, NO], "ann", 2),
        ([NO, YES], Refusal.WRONG, 1),
        ([NOT_MINE, NO, YES], Refusal.WRONG, 2),
        ([NOT_MINE, NOT_MINE], None, 2),
        ([None, YES], Refusal.DOWN, 1),
        ([NOT_MINE, None, YES], Refusal.DOWN, 2),
    ],
)
async def test_back_ends_are_asked_in_order_until_one_knows_the_user_or_fails(answers, outcome, asked):
    site = Site(*(fail if answer is None else say(answer) for answer in answers))
    found = await site.ask()
    assert (found.user if isinstance(found, Token) else found) == outcome
    assert sum(len(backend.asked) for backend in site.backends) == asked


async def test_known_answers_are_given_at_once_and_failures_are_asked_again():
    site = Site(say(NOT_MINE), say(YES))
    assert (await site.ask()).groups == ("plant",)
    answers = []
    assert site.chain.begin(ANN, answers.append, is_stranger_wrong=True) is None
    assert answers[0].user == "ann"
    down = Site(fail)
    assert [await down.ask(), await down.ask()] == [Refusal.DOWN] * 2
    assert len(down.backends[0].asked) == 2


async def test_one_that_hangs_does_not_hold_up_another_user():
    def answer(question):
        return asyncio.sleep(60) if question.user == "slow" else YES

    site = Site(answer)
    slow = asyncio.create_task(site.ask(ANN._replace(user="slow")))
    await asyncio.sleep(0)
    assert (await site.ask()).user == "ann"
    assert not slow.done()
    site.chain.stop()
    slow.cancel()


async def test_wrong_ones_wait_for_longer_and_longer():
    site = Site(say(NO))
    delays = []
    site.chain.call_later = lambda delay_ms, callback: (delays.append(delay_ms), callback())
    for number in range(8):
        assert await site.ask(ANN._replace(password=b"%d" % number)) is Refusal.WRONG
    assert [delay for delay in delays if delay] == [50, 100, 200]


@pytest.mark.parametrize(
    "change",
    [
        {"user": ""},
        {"user": "a\nb"},
        {"user": "x" * 256},
        {"password": b"\xff"},
        {"password": b"x" * 8_193},
        {"client": "x" * 1_025},
    ],
)
async def test_nothing_is_asked_that_no_back_end_can_know(change):
    site = Site(say(YES))
    assert make_question(ANN._replace(**change)) is None
    assert await site.ask(ANN._replace(**change)) is Refusal.WRONG
    assert site.backends[0].asked == []


async def test_other_back_ends_are_asked_anew_and_the_old_ones_are_let_go_of():
    site = Site(say(YES))
    token = await site.ask()
    assert site.chain.is_right(token)
    site.chain.use([ScriptedBackend(say(NO))])
    assert site.backends[0].is_closed
    assert site.chain.is_right(token)  # it is in the same place
    assert await site.ask() is Refusal.WRONG
    site.chain.use([])
    assert not site.chain.is_on
    assert not site.chain.is_right(token)


async def test_answer_ends_when_it_says_so():
    site = Site(lambda question: YES._replace(ends_at_ms=site.now_ms + 1_000))
    token = await site.ask()
    site.now_ms += 1_000
    assert not site.chain.is_right(token)


class Gate:
    """An authenticator with a chain."""

    def __init__(self, answer, **settings):
        clock = HandClock(lambda: 1_000_000)
        said = {"users": {"own": {"password_hash": quick_hash("own")}}, "mqtt_anonymous": False, **settings}
        self.auth = Authenticator(AuthSettings.model_validate(said), {}, clock, HandWork())
        self.backend = ScriptedBackend(answer)
        self.auth.backends.use([self.backend])

    async def answer(self, user, password=b"secret", protocol="mqtt", **more):
        found = asyncio.get_running_loop().create_future()
        who = Credentials(protocol, user, password, FAR, **more)
        self.auth.begin(who, lambda answer, _: found.set_result(answer))
        return await found

    async def user(self, *args, **more):
        answer = await self.answer(*args, **more)
        return answer.user if isinstance(answer, Identity) else answer


async def test_users_of_the_gateway_are_not_asked_about():
    gate = Gate(say(YES))
    assert await gate.user("own", b"own") == "own"
    assert await gate.user("own", b"other") is Refusal.WRONG
    assert await gate.user(None, None) is Refusal.NAMELESS
    assert await gate.user("ann", None) is Refusal.WRONG
    assert await gate.user("guest", b"x", "amqp") is Refusal.WRONG
    assert await gate.user("$bridge/x") is Refusal.WRONG
    assert await gate.user("key", None, "rocketmq", signed=lambda secret: True) is Refusal.WRONG
    assert not gate.backend.asked


@pytest.mark.parametrize("user", ["guest", "", "$bridge/x", "own", "stored"])
@pytest.mark.parametrize("protocol", ["mqtt", "amqp"])
async def test_back_ends_never_see_names_that_are_not_theirs_to_give(user, protocol):
    gate = Gate(say(YES))
    gate.auth.keep_users(MemoryTable())
    gate.auth.stored.put_user("stored", quick_hash("stored"), ())
    for password in (b"guest", b"secret"):
        assert await gate.user(user, password, protocol) is Refusal.WRONG
    assert not gate.backend.asked


async def test_back_ends_never_see_tokens_of_the_api_or_of_keys_here():
    token = tokens.make({"sub": "ann"})
    gate = Gate(say(YES), jwt={"algorithms": ["HS256"], "secret": tokens.SECRET})
    for password in (b"lmq_0123456789ab_x", b" lmq_0123456789ab_x\n", b"lmq_", token + b"\n", token):
        await gate.user("bob", password)
    for user in (token.decode(), "lmq_0123456789ab_x", f" {token.decode()}\n"):  # typed at the wrong place
        assert await gate.user(user, b"secret") is Refusal.WRONG
    assert gate.backend.asked == []
    plain = Gate(say(YES))
    assert await plain.user("ann", b"lmq_0123456789ab_x", "amqp") is Refusal.WRONG
    assert await plain.user("ann", token) == "ann"  # no token is taken here: it may be a back end's password
    assert [question.user for question in plain.backend.asked] == ["ann"]


@pytest.mark.parametrize(
    ("answer", "refusal"),
    [(say(NO), Refusal.WRONG), (say(NOT_MINE), Refusal.WRONG), (fail, Refusal.DOWN)],
    ids=["no", "not mine", "down"],
)
async def test_nobody_with_a_name_is_anonymous_where_there_are_back_ends(answer, refusal):
    assert await Gate(answer).user("ann") is refusal
    gate = Gate(answer, mqtt_anonymous=True)
    assert await gate.user("ann") is refusal
    assert await gate.user(None, None) == ""


async def test_user_of_a_back_end_goes_by_the_rules_of_its_groups_until_a_user_is_called_so():
    rules = [{"permit": "allow", "groups": ["plant"], "topics": ["plant/#"]}]
    gate = Gate(say(YES), rules=rules, default="deny")
    ann = await gate.answer("ann")
    assert ann.may.may_publish(b"plant/1")
    assert not ann.may.may_publish(b"other")
    assert gate.auth.may_stay("mqtt", ann)
    assert gate.auth.may_come("mqtt", "ann")
    settings = AuthSettings.model_validate(
        {"users": {"ann": {"password_hash": quick_hash("x")}}, "rules": rules, "default": "deny"}
    )
    gate.auth.reload(settings, gate.auth.make_users(settings, {}))
    assert not gate.auth.may_stay("mqtt", ann)
    assert await gate.user("ann", b"secret") is Refusal.WRONG


async def test_login_that_is_cancelled_is_not_answered():
    gate = Gate(lambda question: asyncio.sleep(0, YES))
    answers = []
    attempt = gate.auth.begin(ANN, lambda answer, _: answers.append(answer))
    gate.auth.cancel(attempt)
    await gate.user("ann")
    assert answers == []


async def test_client_with_a_certificate_and_no_password_is_for_those_that_look_at_certificates():
    gate = Gate(say(YES))
    blind, seeing = ScriptedBackend(say(YES)), ScriptedBackend(say(YES))
    seeing.sees_certificates = True
    gate.auth.backends.use([blind])
    assert await gate.user("ann", None, certificate=b"der") is Refusal.WRONG
    assert await gate.user(None, None, certificate=b"der") is Refusal.NAMELESS
    gate.auth.backends.use([blind, seeing])
    assert await gate.user("ann", None, certificate=b"der", client="c") == "ann"
    assert await gate.user(None, None, certificate=b"der", client="sensor-1") == "sensor-1"
    assert await gate.user(None, None, client="sensor-1") is Refusal.NAMELESS
    assert blind.asked == []
    assert [question.certificate for question in seeing.asked] == [b"der", b"der"]
    assert await gate.user("ann", b"x", certificate=b"der") == "ann"
    assert len(blind.asked) == 1
    open_ = Gate(say(YES), mqtt_anonymous=True)
    open_.auth.backends.use([seeing])
    assert await open_.user(None, None, certificate=b"der", client="sensor-1") == ""
