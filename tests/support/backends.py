"""A back end for tests that answers as the test says."""

from __future__ import annotations

from gateway.backend_settings import BackendSettings


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
