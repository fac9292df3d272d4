from __future__ import annotations

import asyncio

import pytest

from gateway.auth.backends.asked import TOLD_EVERY_MS, AskedBackend
from gateway.auth.backends.question import NO, BackendError, Question, Reply, Verdict
from tests.support.backends import ScriptedBackend
from tests.support.logins import HandClock

pytestmark = pytest.mark.asyncio

YES = Reply(Verdict.YES, ("plant", "administrator"))
ANN = Question("mqtt", "ann", "secret", "c", "192.0.2.7")


class Site:
    def __init__(self, answer, **settings):
        self.now_ms = 1_000_000
        self.backend = ScriptedBackend(answer, **settings)
        self.asked = AskedBackend(self.backend, "auth.backends[0]", HandClock(lambda: self.now_ms), b"key")


async def test_answer_is_remembered_for_its_time():
    site = Site(lambda question: YES if question.password == "secret" else NO, cache_s=60, cache_refused_s=5)
    for _ in range(2):
        assert await site.asked.ask(ANN) == YES
        assert await site.asked.ask(ANN._replace(password="x")) == NO
    assert site.asked.find(ANN) == YES
    assert len(site.backend.asked) == 2
    site.now_ms += 5_000
    assert site.asked.find(ANN._replace(password="x")) is None
    site.now_ms += 55_000
    assert site.asked.find(ANN) is None


async def test_parts_of_a_question_are_told_apart():
    site = Site(lambda question: YES)
    await site.asked.ask(ANN._replace(user="a", password="bc"))
    assert site.asked.find(ANN._replace(user="ab", password="c")) is None


async def test_time_and_questions_at_once_are_bounded():
    running, most = 0, 0

    async def answer(question):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return YES

    site = Site(answer, requests_max=3)
    await asyncio.gather(*(site.asked.ask(ANN._replace(user=f"u{number}")) for number in range(20)))
    assert most == 3
    hung = Site(lambda question: asyncio.sleep(60), timeout_ms=10, requests_max=1)
    answers = await asyncio.gather(*(hung.asked.ask(ANN) for _ in range(3)), return_exceptions=True)
    assert [type(answer) for answer in answers] == [BackendError] * 3  # those that wait, too


async def test_failure_is_no_answer_is_not_remembered_and_is_logged_once_in_a_while(caplog):
    caplog.set_level("INFO")

    def fail(question):
        raise site.error

    site = Site(fail)
    for error in (OSError("no route"), BackendError("rubbish"), RuntimeError("bug")):
        site.error = error
        with pytest.raises(BackendError):
            await site.asked.ask(ANN)
    assert len([line for line in caplog.messages if "gives no answer" in line]) == 1
    assert "secret" not in caplog.text
    site.now_ms += TOLD_EVERY_MS
    site.error = OSError("no route\nfor you")
    with pytest.raises(BackendError):
        await site.asked.ask(ANN)
    assert len([line for line in caplog.messages if "gives no answer" in line]) == 2
    site.backend.answer = lambda question: YES
    assert await site.asked.ask(ANN) == YES
    assert "answers again" in caplog.messages[-1]


async def test_answer_that_has_ended_is_a_no():
    site = Site(lambda question: YES._replace(ends_at_ms=site.now_ms))
    assert (await site.asked.ask(ANN)).verdict is Verdict.NO


async def test_groups_are_tags_of_the_admin_api_where_the_settings_say_so():
    site = Site(lambda question: YES)
    assert site.asked.vouch(ANN, YES).tags == ()
    assert site.asked.vouch(ANN, YES).groups == ("plant", "administrator")
    site = Site(lambda question: YES, admin_tags=True)
    assert site.asked.vouch(ANN, YES).tags == ("administrator",)
