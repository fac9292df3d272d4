"""Hosts plugins that were written for amqtt, on a thread and an event loop of their own.

The library is that of the extra `amqtt`, which the plugins import themselves.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import threading
from collections.abc import Coroutine, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import is_dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any

LOGGER = logging.getLogger(__name__)

START_S = 10  # for plugins to be made; chosen: some ask a server first
STOP_S = 2  # chosen, of the 5 s in which the gateway stops
STARTS = ("on_broker_pre_start", "on_broker_post_start")
TOPIC_FILTERING = "topic_filtering"
STOPS = ("on_broker_pre_shutdown", "on_broker_post_shutdown", "close")


class PluginError(Exception):
    """A plugin cannot be used, or did not answer; the text names it."""


class HostedTls:
    """The TLS of a client as plugins see it: its certificate, and nothing else."""

    def __init__(self, certificate: bytes) -> None:
        self._certificate = certificate

    def getpeercert(self, binary_form: bool = False) -> bytes | None:  # noqa: FBT001, FBT002  # as ssl has it
        """Return the certificate in DER; in the other form it is not known."""
        return self._certificate if binary_form else None


class HostedSession:
    """A client as plugins see it, with amqtt's names for its fields."""

    def __init__(
        self, *, username: str, password: str, client_id: str, remote_address: str, certificate: bytes = b""
    ) -> None:
        self.username: str | None = username
        self.password: str | None = password
        self.client_id: str | None = client_id
        self.remote_address: str | None = remote_address
        self.remote_port: int | None = None
        self.is_anonymous = False  # a plugin that lets everybody in says so
        self.ssl_object = HostedTls(certificate) if certificate else None
        self.clean_session: bool | None = None
        self.keep_alive = 0
        self.will_flag = False
        self.will_topic: str | None = None
        self.will_message: bytes | None = None
        self.will_qos: int | None = None
        self.will_retain: bool | None = None
        self.broker_uri: str | None = None
        self.attributes: dict[str, Any] = {}


class HostedContext:
    """What a plugin is given of the broker that it is in: its settings, a logger, the loop, and no clients."""

    def __init__(self, config: object, logger: logging.Logger, loop: asyncio.AbstractEventLoop) -> None:
        self.config = config
        self.logger = logger
        self.loop = loop

    @property
    def sessions(self) -> Iterator[HostedSession]:
        """No clients: they are the gateway's."""
        return iter(())

    @property
    def subscriptions(self) -> dict[str, Any]:
        """None: they are the gateway's."""
        return {}

    @property
    def retained_messages(self) -> dict[str, Any]:
        """None: they are the gateway's."""
        return {}

    def get_session(self, client_id: str) -> None:
        """Return no client."""


class PluginHost:
    """Plugins on a thread of their own, which does not keep the process alive.

    Args:
        plugins: By the path of each, MODULE.CLASS, its settings as amqtt has them.
        name: Of the thread.

    Raises:
        PluginError: One cannot be made.
    """

    def __init__(self, plugins: Mapping[str, Mapping[str, Any]], name: str) -> None:
        self._plugins: dict[str, Any] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()
        made = asyncio.run_coroutine_threadsafe(self._make_all(plugins), self._loop)
        try:
            made.result(START_S)
        except TimeoutError as error:
            self.close()
            raise PluginError(f"not ready within {START_S} s: {', '.join(plugins)}") from error
        except BaseException:
            self.close()
            raise

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            left = asyncio.all_tasks(self._loop)
            for task in left:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            self._loop.close()

    async def _make_all(self, plugins: Mapping[str, Mapping[str, Any]]) -> None:
        for path, said in plugins.items():
            self._plugins[path] = make_plugin(path, said, self._loop)
        for name in STARTS:
            await self._tell(name)

    async def authenticate(self, session: HostedSession) -> bool | None:
        """Return what the plugins say together, as amqtt has it: one that says no, all that say anything yes, or None.

        Raises:
            PluginError: One failed, or said something else.
        """
        return await self._run(self._authenticate(session))

    @property
    def has_topic_plugins(self) -> bool:
        """Whether some of them say what may be done with topics."""
        return any(hasattr(plugin, TOPIC_FILTERING) for plugin in self._plugins.values())

    async def filter_topic(self, session: HostedSession, topic: str, action: str) -> bool:
        """Return whether the plugins let a client do something with a topic: as amqtt has it, each of them says yes.

        Raises:
            PluginError: One failed, or said something else.
        """
        return bool(await self._run(self._filter(session, topic, action)))

    async def _filter(self, session: HostedSession, topic: str, action: str) -> bool:
        for path, plugin in self._plugins.items():
            if hasattr(plugin, TOPIC_FILTERING):
                asked = plugin.topic_filtering(session=session, topic=topic, action=_make_action(action))
                if not await _ask(path, asked):
                    return False
        return True

    async def _run(self, work: Coroutine[Any, Any, bool | None]) -> bool | None:
        if not self._loop.is_running():
            work.close()
            raise PluginError("the plugins were stopped")
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def _authenticate(self, session: HostedSession) -> bool | None:
        answers = []
        for path, plugin in self._plugins.items():
            if hasattr(plugin, "authenticate"):
                answers.append(await _ask(path, plugin.authenticate(session=session)))
        answers = [answer for answer in answers if answer is not None]
        return all(answers) if answers else None

    async def _tell(self, name: str) -> None:
        for path, plugin in self._plugins.items():
            if hasattr(plugin, name):
                try:
                    await getattr(plugin, name)()
                except Exception as error:
                    raise PluginError(f"{path}: {name}: {error!r}") from error

    def close(self) -> None:
        """Let the plugins end, and the thread; one that hangs is left behind."""
        if self._loop.is_running():
            with contextlib.suppress(RuntimeError):  # it ends just now
                ended = asyncio.run_coroutine_threadsafe(self._end(), self._loop)
                ended.add_done_callback(partial(_stop, self._loop))

    async def _end(self) -> None:
        async with asyncio.timeout(STOP_S):
            for name in STOPS:
                try:
                    await self._tell(name)
                except PluginError as error:
                    LOGGER.warning("a plugin did not end well: %s", error)

    def join(self) -> None:
        """Wait for the thread, after `close`, for a moment."""
        self._thread.join(STOP_S)


def _stop(loop: asyncio.AbstractEventLoop, ended: Future[None]) -> None:
    del ended
    loop.call_soon_threadsafe(loop.stop)


def _make_action(name: str) -> object:
    """Return an action as amqtt calls it; without amqtt its name."""
    try:
        return importlib.import_module("amqtt.contexts").Action(name)
    except ImportError:
        return name


async def _ask(path: str, answer: Coroutine[Any, Any, object]) -> bool | None:
    try:
        said = await answer
    except Exception as error:
        LOGGER.debug("a plugin failed plugin=%s", path, exc_info=error)
        raise PluginError(f"{path} failed: {type(error).__name__}") from error  # its text may have a password in it
    if said is None or isinstance(said, bool):
        return said
    raise PluginError(f"{path} answered neither yes nor no")


def make_plugin(path: str, said: Mapping[str, Any], loop: asyncio.AbstractEventLoop) -> Any:  # noqa: ANN401  # of whatever class
    """Return a plugin, made as amqtt makes it.

    Raises:
        PluginError: It is not there, its settings are wrong, or it fails.
    """
    module, _, name = path.rpartition(".")
    try:
        kind = getattr(importlib.import_module(module), name)
        dacite = importlib.import_module("dacite")
    except Exception as error:  # a module may raise anything while it is imported
        raise PluginError(
            f"{path} cannot be imported: {error}; amqtt's own need 'lmq-gateway[amqtt]' or 'amqtt[contrib]'"
        ) from error
    config = getattr(kind, "Config", None)
    if not isinstance(kind, type) or not is_dataclass(config):
        raise PluginError(f"{path} is not a plugin for amqtt: it has no dataclass Config")
    try:
        made = dacite.from_dict(config, dict(said), dacite.Config(strict=True, cast=[Enum, Path]))
    except Exception as error:  # of whatever kind the plugin's own classes raise
        raise PluginError(f"{path}: wrong settings: {error}") from error
    logger = logging.getLogger(f"{__name__}.{name}")
    try:
        return kind(HostedContext(made, logger, loop))
    except Exception as error:  # as above
        raise PluginError(f"{path} cannot be made: {error!r}") from error
