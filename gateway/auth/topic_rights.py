"""What a user may do with topics where a back end is asked about each of them, and what is known of that so far.

A question that is not answered yet counts as a no. A door that can wait asks first, by `TopicRights.ask`; others go by
what is known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from core.reserved import OWN_ROOTS
from gateway.auth.judge import Verdict
from gateway.auth.permissions import Permissions, Rights
from gateway.auth.rule import Subject
from gateway.auth.rule_trie import ANY_LEVELS, ONE_LEVEL

PUBLISH, SUBSCRIBE, RECEIVE = "publish", "subscribe", "receive"  # amqtt's words
KEPT_MAX = 20_000  # answers that one connection lives by; chosen: a client with more topics asks again
TOGETHER_MAX = 64  # questions of one connection; chosen, so that no client takes a back end for itself

Wanted = tuple[str, bytes]  # an action, and a topic or filter


class TopicQuestion(NamedTuple):
    """Whether a client may do something with a topic, or with all that a filter matches."""

    user: str
    client: str
    host: str
    action: str
    topic: bytes


class TopicJudge(Protocol):
    """A back end that is asked about topics."""

    @property
    def name(self) -> str:
        """What the settings call it."""

    def find_topic(self, question: TopicQuestion) -> bool | None:
        """Return what it said lately, None where it is to be asked."""

    async def ask_topic(self, question: TopicQuestion) -> bool | None:
        """Return what it says, None where it does not answer."""


def _nothing() -> None:
    return


class Asking:
    """Some questions that are under way; `on_over` is called when all are answered, or cannot be."""

    __slots__ = ("is_over", "on_over", "task")

    def __init__(self) -> None:
        self.is_over = False
        self.on_over: Callable[[], None] = _nothing
        self.task: asyncio.Task[None] | None = None

    def end(self) -> None:
        """There is nothing more to wait for."""
        self.is_over = True
        on_over, self.on_over = self.on_over, _nothing
        on_over()


class TopicRights:
    """Those of one connection.

    Args:
        judge: Is asked.
        user: That it let in.
        client: Its MQTT client identifier.
        host: Where it is.
    """

    def __init__(self, judge: TopicJudge, user: str, client: str, host: str) -> None:
        self.judge = judge
        self._who = TopicQuestion(user, client, host, "", b"")
        self._kept: set[Wanted] = set()  # granted: what subscriptions and the will live by
        self._last: dict[Wanted, bool] = {}  # the latest answers, for messages that wait for them
        self._unknown: dict[Wanted, None] = {}  # what was a no for want of an answer, since `take_unknown`

    def may(self, action: str, topic: bytes) -> bool:
        """Return whether it is known that the client may do that."""
        wanted = action, topic
        known = self._last.get(wanted)
        if known is None:
            known = self._find(wanted)
        if known is None and len(self._unknown) < TOGETHER_MAX:
            self._unknown[wanted] = None
        return bool(known)

    def take_unknown(self) -> Sequence[Wanted]:
        """Return what was a no for want of an answer, since this was asked last."""
        unknown, self._unknown = self._unknown, {}
        return list(unknown)

    def _find(self, wanted: Wanted) -> bool | None:
        return True if wanted in self._kept else self.judge.find_topic(self._question(wanted))

    def _question(self, wanted: Wanted) -> TopicQuestion:
        return self._who._replace(action=wanted[0], topic=wanted[1])

    def ask(self, wanted: Iterable[Wanted], *, keeps: bool = False, is_more: bool = False) -> Asking | None:
        """Ask what is not known yet; return what is to be waited for, None where all is known.

        Args:
            wanted: Questions.
            keeps: A yes counts for as long as the connection lasts.
            is_more: It is for what was asked for before, too.
        """
        unknown = [one for one in dict.fromkeys(wanted) if self._look(one, keeps=keeps) is None]
        if not unknown:
            return None
        asking = Asking()
        self._last = {**(self._last if is_more else {}), **dict.fromkeys(unknown, False)}
        asking.task = asyncio.get_running_loop().create_task(self._ask(unknown, asking, keeps=keeps))
        return asking

    async def ask_one(self, wanted: Wanted) -> bool | None:
        """Return what the back end says, and keep a yes for as long as this lasts; None where it does not answer."""
        answer = await self.judge.ask_topic(self._question(wanted))
        if answer:
            self._keep(wanted)
        return answer

    def _look(self, wanted: Wanted, *, keeps: bool) -> bool | None:
        known = self._find(wanted)
        if known and keeps:
            self._keep(wanted)
        return known

    def _keep(self, wanted: Wanted) -> None:
        if len(self._kept) < KEPT_MAX:
            self._kept.add(wanted)

    async def _ask(self, unknown: Sequence[Wanted], asking: Asking, *, keeps: bool) -> None:
        try:
            for start in range(0, len(unknown), TOGETHER_MAX):
                some = unknown[start : start + TOGETHER_MAX]
                said = await asyncio.gather(*(self.judge.ask_topic(self._question(one)) for one in some))
                for one, answer in zip(some, said, strict=True):
                    self._last[one] = bool(answer)
                    if answer and keeps:
                        self._keep(one)
                if None in said:  # it does not answer: the rest would wait as long, each
                    break
        finally:
            asking.end()


class AskedPermissions(Permissions):
    """The rights of a client whose topics a back end is asked about, too: the rules and it both have to say yes.

    Args:
        rights, subject: As for all.
        topics: What the back end says.
    """

    __slots__ = ("_topics",)

    def __init__(self, *, rights: Rights, subject: Subject, topics: TopicRights) -> None:
        super().__init__(rights=rights, subject=subject)
        self._topics = topics

    def may_publish(self, topic: bytes) -> bool:
        """Return whether messages may be sent to `topic`."""
        return super().may_publish(topic) and self._topics.may(PUBLISH, topic)

    def may_publish_matching(self, topic_filter: bytes) -> bool:
        """Return whether messages may be sent to all topics that match `topic_filter`: it is asked about one alone."""
        if has_wildcard(topic_filter):
            return False
        return super().may_publish_matching(topic_filter) and self._topics.may(PUBLISH, topic_filter)

    def may_subscribe(self, topic_filter: bytes) -> bool:
        """Return whether all that matches `topic_filter` may be read."""
        return super().may_subscribe(topic_filter) and self._may_read(topic_filter)

    def may_bind_topic(self, topic_filter: bytes) -> bool:
        """Return whether all that a binding key matches may be read: none that is no filter of MQTT."""
        return super().may_bind_topic(topic_filter) and self._may_read_wide(topic_filter)

    def may_read_everything(self) -> bool:
        """Return whether all that is stored may be read: nobody says so of queues and topics together."""
        return False

    def _may_read(self, topic_filter: bytes) -> bool:
        said = [self._topics.may(action, topic_filter) for action in (SUBSCRIBE, RECEIVE)]
        return all(said)

    def _may_read_wide(self, topic_filter: bytes) -> bool:
        """Return the same of a binding key, whose first wildcard also matches our own topics."""
        levels = topic_filter.split(b"/")
        if ANY_LEVELS in levels[:-1]:
            return False
        further = [root + ANY_LEVELS for root in OWN_ROOTS] if levels[0] in {ANY_LEVELS, ONE_LEVEL} else []
        said = [self._may_read(one) for one in (topic_filter, *further)]  # all: what is not known is asked together
        return all(said)

    def explain(self, action: str, name: bytes, vhost: bytes = b"/") -> Verdict:
        """Say what decides a question, and how."""
        verdict = super().explain(action, name, vhost)
        asked: dict[str, Callable[[bytes], bool]] = {
            "publish": partial(self._topics.may, PUBLISH),
            "subscribe": self._may_read,
            "bind topic": self._may_read_wide,
        }
        if verdict.is_allowed and action in asked and not asked[action](name):
            return Verdict(is_allowed=False, by=self._topics.judge.name)
        return verdict

    def find_decider(self, action: str, name: bytes, vhost: bytes = b"/") -> str:
        """Return which rule, or back end, decides a question, for the log."""
        by = self.explain(action, name, vhost).by
        return by if by == self._topics.judge.name else super().find_decider(action, name, vhost)


def has_wildcard(topic_filter: bytes) -> bool:
    """Return whether a filter matches more than one topic."""
    return not {ANY_LEVELS, ONE_LEVEL}.isdisjoint(topic_filter.split(b"/"))


def reading(topic_filters: Iterable[bytes]) -> Iterable[Wanted]:
    """Give what is to be asked before these filters can be subscribed to."""
    for topic_filter in topic_filters:
        yield SUBSCRIBE, topic_filter
        yield RECEIVE, topic_filter
