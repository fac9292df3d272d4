"""One back end with what is around it: a time limit, so many questions at once, a memory, a line in the log."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any

from gateway.auth.backends.question import (
    NO,
    Backend,
    BackendError,
    CertificateBackend,
    Question,
    Reply,
    TopicBackend,
    Verdict,
)
from gateway.auth.backends.reply_memory import ReplyMemory
from gateway.auth.tokens import TAGS, Token
from gateway.auth.topic_rights import TopicQuestion
from gateway.logs import said
from gateway.runtime.loop import Clock

LOGGER = logging.getLogger(__name__)

TOLD_EVERY_MS = 60_000  # that a back end gives no answers


class Counts:
    """What became of the questions to one back end since it is in use, and how long they took together.

    `outcomes` are answers by `allow`, `deny`, `ignore`, and `failed`: no answer; those from memory are `remembered`.
    """

    def __init__(self) -> None:
        self.outcomes = dict.fromkeys([*(verdict.value for verdict in Verdict), "failed"], 0)
        self.remembered = 0
        self.under_way = 0  # now, with those that wait for their turn
        self.ms = 0


class AskedBackend:
    """A back end as the chain asks it.

    Args:
        backend: What knows users.
        name: What the settings call it.
        clock: The gateway's.
        key: Of digests, the process's own.
    """

    def __init__(self, backend: Backend, name: str, clock: Clock, key: bytes) -> None:
        self.name = name
        self.settings = backend.settings
        self.kind: str = getattr(backend.settings, "kind", "")
        self.counts = Counts()
        self.mark = hashlib.sha256(self.settings.identity().encode()).digest()
        self._backend = backend
        self.sees_certificates = isinstance(backend, CertificateBackend) and backend.sees_certificates
        self._topics = backend if isinstance(backend, TopicBackend) and backend.judges_topics else None
        self._clock = clock
        self._key = key
        self._memory = ReplyMemory(self.settings)
        self._places = asyncio.Semaphore(self.settings.requests_max)
        self._failed = 0
        self._told_at_ms = -TOLD_EVERY_MS
        self._successor: AskedBackend | None = None  # of the same settings, read again

    def find(self, question: Question) -> Reply | None:
        """Return what it said lately, None where it is to be asked."""
        return self._find(self._digest(question))

    def _find(self, digest: bytes) -> Reply | None:
        found = self._memory.find(digest, self._clock.now_ms())
        self.counts.remembered += found is not None
        return found

    async def ask(self, question: Question) -> Reply:
        """Return its answer.

        Raises:
            BackendError: There is none within its time, or none that can be used.
        """
        return await self._ask(self._digest(question), partial(self._backend.ask, question))

    def find_topic(self, question: TopicQuestion) -> bool | None:
        """Return what it, or its successor, said lately of a topic, None where that is to be asked."""
        latest = self._find_latest()
        if latest is not self:
            return latest.find_topic(question)
        known = self._find(self._digest_of(_parts_of(question)))
        return None if known is None else known.verdict is Verdict.YES

    async def ask_topic(self, question: TopicQuestion) -> bool | None:
        """Return what it, or its successor, says of a topic, None where that does not answer: then nobody may."""
        latest = self._find_latest()
        if latest is not self:
            return await latest.ask_topic(question)
        try:
            reply = await self._ask(self._digest_of(_parts_of(question)), partial(self._judge, question))
        except BackendError:
            return None
        return reply.verdict is Verdict.YES

    def _find_latest(self) -> AskedBackend:
        """Return what stands in this one's place now."""
        latest = self
        while latest._successor is not None:
            latest = latest._successor
        if latest is not self:
            self._successor = latest
        return latest

    async def _judge(self, question: TopicQuestion) -> Reply:
        assert self._topics is not None
        return Reply(Verdict.YES) if await self._topics.ask_topic(question) else NO

    async def _ask(self, digest: bytes, work: Callable[[], Coroutine[Any, Any, Reply]]) -> Reply:
        began_ms = self._clock.now_ms()
        self.counts.under_way += 1
        try:
            async with asyncio.timeout(self.settings.timeout_ms / 1000), self._places:
                known = self._find(digest)
                if known is not None:
                    return known
                reply = await work()
        except TimeoutError as error:
            raise self._fail(f"no answer within {self.settings.timeout_ms} ms", began_ms) from error
        except (BackendError, OSError) as error:
            raise self._fail(str(error) or type(error).__name__, began_ms) from error
        except Exception as error:
            LOGGER.exception("a back end of logins failed name=%s", self.name)
            self._count("failed", began_ms)
            raise BackendError("it failed") from error
        finally:
            self.counts.under_way -= 1
        return self._take(digest, reply, began_ms)

    def _take(self, digest: bytes, reply: Reply, began_ms: int) -> Reply:
        """Return an answer that came, which is remembered; one that has ended is a no."""
        now_ms = self._clock.now_ms()
        if self._failed:
            LOGGER.info("a back end of logins answers again name=%s failed=%d", self.name, self._failed)
            self._failed = 0
            self._told_at_ms = -TOLD_EVERY_MS
        if reply.verdict is Verdict.YES and reply.ends_at_ms <= self._clock.machine_ms():
            reply = Reply(Verdict.NO)
        self._count(reply.verdict.value, began_ms)
        self._memory.add(digest, reply, now_ms)  # the clock here is never behind the machine's: it forgets in time
        return reply

    def _count(self, outcome: str, began_ms: int) -> None:
        self.counts.outcomes[outcome] += 1
        self.counts.ms += self._clock.now_ms() - began_ms

    def _fail(self, why: str, began_ms: int) -> BackendError:
        """Say that there was no answer, once in a while, and return the error."""
        self._failed += 1
        self._count("failed", began_ms)
        now_ms = self._clock.now_ms()
        if now_ms - self._told_at_ms >= TOLD_EVERY_MS:
            self._told_at_ms = now_ms
            text = "a back end of logins gives no answer: nobody comes in by it name=%s kind=%s failed=%d error=%s"
            LOGGER.warning(text, self.name, self.kind, self._failed, said(why))
        return BackendError(why)

    def vouch(self, question: Question, reply: Reply) -> Token:
        """Return the login of a user that the back end let in."""
        groups = tuple(dict.fromkeys((*reply.groups, *self.settings.groups)))
        tags = tuple(tag for tag in TAGS if tag in groups) if self.settings.admin_tags else ()
        return Token(question.user, groups, tags, reply.ends_at_ms, self.mark, reply.rules, self.topic_judge)

    @property
    def topic_judge(self) -> AskedBackend | None:
        """The back end that is asked about each topic of clients that it let in: itself, or None."""
        return None if self._topics is None else self

    def give_way(self, others: Sequence[AskedBackend]) -> None:
        """Close. Clients that this back end let in ask the one of `others` that has the same settings from now on."""
        self._successor = next((other for other in others if other.mark == self.mark), None)
        self._memory = ReplyMemory(self.settings)  # those clients may know this one for long
        self.close()

    def close(self) -> None:
        """Let go of its connections and threads."""
        self._backend.close()

    def _digest(self, question: Question) -> bytes:
        return self._digest_of([b"login", *(part.encode() for part in self._backend.key(question))])

    def _digest_of(self, parts: Iterable[bytes]) -> bytes:
        whole = b"".join(len(part).to_bytes(4) + part for part in parts)
        return hmac.new(self._key, whole, hashlib.sha256).digest()


def _parts_of(question: TopicQuestion) -> Iterable[bytes]:
    yield b"topic"
    yield from (text.encode() for text in question[:4])
    yield question.topic
