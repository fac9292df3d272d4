"""Plugins for amqtt, as users of that broker write them."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from amqtt.plugins.base import BaseAuthPlugin, BasePlugin, BaseTopicPlugin


class OwnPlugin(BaseAuthPlugin):
    """Lets those in whose password is their name and a suffix; notes what became of it in `events`."""

    events: ClassVar[list] = []

    @dataclass
    class Config:
        suffix: str
        strangers: list[str] = field(default_factory=list)

    def __init__(self, context):
        super().__init__(context)
        self.events.append(("made", threading.current_thread().name, asyncio.get_running_loop() is context.loop))

    async def on_broker_pre_start(self):
        self.events.append("started")

    async def authenticate(self, *, session):
        await asyncio.sleep(0)
        self.events.append((session.client_id, session.remote_address))
        if session.username in self.config.strangers:
            return None
        return session.password == session.username + self.config.suffix

    async def close(self):
        self.events.append("closed")


class SecretPlugin(BaseAuthPlugin):
    """Lets ann in."""

    @dataclass
    class Config:
        password: str

    async def authenticate(self, *, session):
        return session.username == "ann" and session.password == self.config.password


class OddPlugin(BaseAuthPlugin):
    """Does as the user name says."""

    async def authenticate(self, *, session):
        if session.username == "hangs":
            await asyncio.sleep(60)
        elif session.username == "fails":
            raise ValueError(session.password)
        elif session.username == "rubbish":
            return "yes"
        return True


class FilePlugin(BaseAuthPlugin, BaseTopicPlugin):
    """Lets everybody in whose password is `secret`, and to the topics that a file has, one a line.

    `asked` is a file that each question is written to.
    """

    @dataclass
    class Config:
        topics: str
        asked: str

    async def authenticate(self, *, session):
        return session.password == "secret"

    async def topic_filtering(self, *, session=None, topic=None, action=None):
        with Path(self.config.asked).open("a") as file:  # noqa: ASYNC230 - on a loop of the plugin's own
            file.write(f"{session.client_id} {action.value} {topic}\n")
        return topic in Path(self.config.topics).read_text().split()  # noqa: ASYNC240 - as above


class BadPlugin(BaseAuthPlugin):
    """Cannot be made."""

    def __init__(self, context):
        raise OSError("no such device")


class StartlessPlugin(BasePlugin):
    """Cannot be started."""

    async def on_broker_pre_start(self):
        raise OSError("no such device")
