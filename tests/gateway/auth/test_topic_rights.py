from __future__ import annotations

import asyncio

import pytest

from core.cache_budget import CacheBudget
from gateway.auth.rule_book import RuleBook
from gateway.auth.topic_rights import KEPT_MAX, PUBLISH, TopicRights, reading

pytestmark = pytest.mark.asyncio


class Judge:
    """Says yes to topics of `allowed`; `None` where it is away."""

    name = "auth.backends[0]"

    def __init__(self, *allowed):
        self.allowed = allowed
        self.asked = []
        self.known = {}
        self.is_away = False

    def find_topic(self, question):
        return self.known.get((question.action, question.topic))

    async def ask_topic(self, question):
        self.asked.append((question.action, question.topic))
        await asyncio.sleep(0)
        return None if self.is_away else question.topic in self.allowed


async def over(asking):
    while asking is not None and not asking.is_over:
        await asyncio.sleep(0)


def make(judge):
    topics = TopicRights(judge, "ann", "c", "192.0.2.1")
    book = RuleBook(CacheBudget())
    book.change([], {}, allows=True)
    return topics, book.make("ann", client="c", host="192.0.2.1", door="mqtt", groups=(), topics=topics)


async def test_what_is_not_known_is_a_no_until_it_was_asked():
    topics, may = make(Judge(b"a"))
    assert not may.may_publish(b"a")
    assert not may.may_subscribe(b"a")
    await over(topics.ask([(PUBLISH, b"a"), (PUBLISH, b"b"), *reading([b"a"])]))
    assert may.may_publish(b"a")
    assert may.may_subscribe(b"a")
    assert may.may_bind_topic(b"a")
    assert not may.may_publish(b"b")
    topics.judge.known.update({(PUBLISH, b"a"): True, (PUBLISH, b"b"): False})
    assert topics.ask([(PUBLISH, b"a"), (PUBLISH, b"b")]) is None
    assert not may.may_publish_matching(b"#")
    assert not may.may_read_everything()


async def test_what_a_subscription_lives_by_is_kept_and_the_rest_as_long_as_it_is_remembered():
    judge = Judge(b"a", b"b")
    topics, may = make(judge)
    await over(topics.ask(reading([b"a"]), keeps=True))
    await over(topics.ask([(PUBLISH, b"b")]))
    await over(topics.ask([(PUBLISH, b"c")]))
    assert may.may_subscribe(b"a")
    assert not may.may_publish(b"b")
    judge.known[PUBLISH, b"b"] = True
    assert may.may_publish(b"b")
    judge.known.update(dict.fromkeys(reading([b"b"]), True))
    assert topics.ask(reading([b"b"]), keeps=True) is None
    judge.known.clear()
    assert may.may_subscribe(b"b")


async def test_back_end_that_is_away_is_not_asked_about_the_rest():
    judge = Judge()
    judge.is_away = True
    topics, may = make(judge)
    await over(topics.ask([(PUBLISH, b"%d" % number) for number in range(1_000)]))
    assert len(judge.asked) == 64
    assert not may.may_publish(b"1")


async def test_what_decided_is_told():
    topics, may = make(Judge(b"a"))
    await over(topics.ask([(PUBLISH, b"a"), *reading([b"a", b"s"])]))
    assert may.explain("publish", b"a").is_allowed
    assert may.explain("subscribe", b"a").is_allowed
    assert may.find_decider("publish", b"s") == "auth.backends[0]"
    assert tuple(may.explain("subscribe", b"s"))[:2] == (False, "auth.backends[0]")
    assert may.find_decider("publish", b"a") == ""


async def test_a_connection_keeps_so_many_answers():
    topics, _ = make(Judge(*(b"%d" % number for number in range(KEPT_MAX + 10))))
    topics._kept.update((PUBLISH, b"x%d" % number) for number in range(KEPT_MAX))
    await over(topics.ask([(PUBLISH, b"1")], keeps=True))
    assert len(topics._kept) == KEPT_MAX


async def test_what_was_a_no_for_want_of_an_answer_is_told_once():
    topics, may = make(Judge(b"a/#", b"$SYS/broker/#", b"$events/#", b"#"))
    assert not may.may_bind_topic(b"a/#")
    assert not may.may_publish(b"b")
    assert topics.take_unknown() == [*reading([b"a/#"]), (PUBLISH, b"b")]
    assert topics.take_unknown() == []
    await over(topics.ask([*reading([b"a/#"]), (PUBLISH, b"b")]))
    assert may.may_bind_topic(b"a/#")
    assert not may.may_publish(b"b")
    assert topics.take_unknown() == []


async def test_binding_key_whose_first_level_is_any_is_for_our_own_topics_too():
    judge = Judge(b"#", b"$SYS/broker/#")
    topics, may = make(judge)
    assert not may.may_bind_topic(b"#")
    wanted = topics.take_unknown()
    assert wanted == list(reading([b"#", b"$SYS/broker/#", b"$events/#"]))
    await over(topics.ask(wanted))
    assert not may.may_bind_topic(b"#")
    judge.allowed = (*judge.allowed, b"$events/#")
    await over(topics.ask(wanted))
    assert may.may_bind_topic(b"#")
    assert may.may_subscribe(b"#")


async def test_what_is_no_filter_of_mqtt_or_no_topic_is_refused_unasked():
    topics, may = make(Judge(b"a/#/b", b"a/+"))
    assert not may.may_bind_topic(b"a/#/b")
    assert not may.may_publish_matching(b"a/+")
    assert topics.take_unknown() == []
    assert not may.may_publish_matching(b"a")
    assert topics.take_unknown() == [(PUBLISH, b"a")]
    assert may.explain("bind topic", b"a/#/b").by == Judge.name


async def test_answers_to_what_was_asked_before_count_with_those_that_follow():
    topics, may = make(Judge(b"a", b"b"))
    await over(topics.ask([(PUBLISH, b"a")]))
    await over(topics.ask([(PUBLISH, b"b")], is_more=True))
    assert may.may_publish(b"a")
    assert may.may_publish(b"b")
    await over(topics.ask([(PUBLISH, b"b")]))
    assert not may.may_publish(b"a")
