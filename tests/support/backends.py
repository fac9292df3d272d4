"""A back end for tests that answers as the test says."""

from __future__ import annotations

import asyncio

from gateway.auth.backends.question import BackendError, Reply, Verdict
from gateway.settings.backends import BackendSettings


class ScriptedBackend:
    """`answer(question)` is asked, or awaited; what was asked is in `asked`."""

    def __init__(self, answer, **settings):
        self.answer = answer
        self.settings = BackendSettings(**settings)
        self.asked = []
        self.is_closed = False

    def key(self, question):
        return (question.user, question.password)

    async def ask(self, question):
        self.asked.append(question)
        said = self.answer(question)
        return await said if hasattr(said, "__await__") else said

    def close(self):
        self.is_closed = True


class JudgeBackend(ScriptedBackend):
    """Lets everybody in, and to topics below `open/`; `gate` holds its answers about topics back."""

    judges_topics = True
    opens = b"open/"

    def __init__(self, **settings):
        super().__init__(lambda question: Reply(Verdict.YES), cache_s=60, cache_refused_s=60, **settings)
        self.topics = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.fails = False

    async def ask_topic(self, question):
        self.topics.append((question.user, question.action, question.topic))
        await self.gate.wait()
        if self.fails or self.is_closed:
            raise BackendError("away")
        return question.topic.startswith(self.opens)
