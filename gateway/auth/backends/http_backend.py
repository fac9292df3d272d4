"""A web server that is asked about each login."""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import urlencode

from gateway.auth.backends.http_client import HttpClient
from gateway.auth.backends.http_replies import read_reply
from gateway.auth.backends.question import Question, Reply
from gateway.settings.backends import HttpBackendSettings, fill
from gateway.settings.models import SettingsError

TYPES = {"form": "application/x-www-form-urlencoded", "json": "application/json"}


class HttpBackend:
    """One server.

    Args:
        settings: Where it is, and how it is asked.
        environment: Holds what is in no file.

    Raises:
        SettingsError: Something that the settings name is missing, or cannot be used.
    """

    def __init__(self, settings: HttpBackendSettings, environment: Mapping[str, str]) -> None:
        self.settings = settings
        self._headers = dict(settings.headers)
        if settings.authorization_env:
            said = environment.get(settings.authorization_env, "")
            if not said or not said.isascii() or not said.isprintable():
                raise SettingsError(f"authorization_env: {settings.authorization_env} is not set, or no header")
            self._headers["Authorization"] = said
        self._client = HttpClient(settings.url, settings.ca)

    def key(self, question: Question) -> tuple[str, ...]:
        """Return what is told of a login."""
        return tuple(self._fields(question).values())

    def _fields(self, question: Question) -> dict[str, str]:
        values = question.values()
        return {name: fill(template, values) for name, template in self.settings.fields.items()}

    async def ask(self, question: Question) -> Reply:
        """Return what the server says of a login.

        Raises:
            BackendError, OSError: It says nothing that can be understood.
        """
        fields = self._fields(question)
        if self.settings.method == "get":
            return read_reply(await self._client.send("GET", query=urlencode(fields), headers=self._headers))
        form = self.settings.encoding
        body = json.dumps(fields) if form == "json" else urlencode(fields)
        headers = {**self._headers, "Content-Type": TYPES[form]}
        return read_reply(await self._client.send("POST", headers=headers, body=body.encode()))

    def close(self) -> None:
        """Close the connections that nobody waits at."""
        self._client.close()
