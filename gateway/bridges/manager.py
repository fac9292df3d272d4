"""All bridges of a gateway: they start when its doors are open, and stop before them."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
from collections.abc import Iterator
from functools import partial
from types import ModuleType
from typing import Protocol, cast

from core.metrics import BridgeMetrics, Metrics
from gateway.auth.authenticator import Authenticator
from gateway.auth.credentials import OWN_PREFIX
from gateway.bridges.local_link import Now
from gateway.bridges.remote_filters import RemoteFilters
from gateway.mqtt.door import MqttDoor
from gateway.mqtt.errors import MalformedPacketError
from gateway.mqtt.topics import DELAYED_PREFIX, check_topic
from gateway.settings.bridges import BridgeSettings
from gateway.settings.models import SettingsError

LOGGER = logging.getLogger(__name__)

OPEN_S = 5.0  # for the sessions of all bridges to get their filters; chosen: devices wait for it
PREFIX = OWN_PREFIX  # of the user and the client identifier that a bridge's session has


def check_bridges(settings: dict[str, BridgeSettings]) -> ModuleType | None:
    """Return the module that bridges are made by, None where there are none.

    Raises:
        SettingsError: aiomqtt is missing, or the variable of a password is not set.
    """
    for name, one in settings.items():
        if one.password_env and one.password_env not in os.environ:
            raise SettingsError(f"bridges.{name}.password_env: {one.password_env} is not set")
    if not settings:
        return None
    try:
        return importlib.import_module("gateway.bridges.bridge")
    except ImportError as error:
        why = f"bridges need aiomqtt, which cannot be imported ({error}): pip install 'lmq-gateway[bridge]'"
        raise SettingsError(why) from error


def describe_unreadable(settings: dict[str, BridgeSettings]) -> list[str]:
    """Return a line for each file of a bridge that cannot be read now; bridges read theirs whenever they connect."""
    lines = []
    for name, one in settings.items():
        files = [("password_file", one.password_file)]
        if one.tls is not None:
            files += [(f"tls.{field}", getattr(one.tls, field)) for field in ("ca", "certificate", "key")]
        for field, path in files:
            try:
                if path is not None:
                    path.read_bytes()
            except OSError as error:
                lines.append(f"bridges.{name}.{field}: cannot read {path}: {error.strerror}")
    return lines


class RunningBridge(Protocol):
    """A bridge, whatever it needs to be imported for."""

    @property
    def place(self) -> str:
        """Which session of which broker it has on the other side."""

    def open(self) -> asyncio.Future[None]:
        """Take up its session here; return what is done when that has its filters."""

    def start(self) -> None:
        """Begin to carry."""

    async def stop(self, *, for_good: bool = False) -> None:
        """End; for good where nobody comes back to its session there."""


class Bridges:
    """The bridges that the settings name. `open` comes before clients are let in, `start` afterwards.

    Args:
        settings: Of each, by name.
        door: Where their sessions are.
        authenticator: Lets them in.
        metrics: Where they are counted.
        begin_read: Tells the moment, before so many bytes are handled.

    Raises:
        SettingsError: aiomqtt is missing, or the variable of a password is not set.
    """

    def __init__(
        self,
        settings: dict[str, BridgeSettings],
        door: MqttDoor,
        authenticator: Authenticator,
        metrics: Metrics,
        begin_read: Now,
    ) -> None:
        self._settings = settings
        self._door = door
        self._authenticator = authenticator
        self._metrics = metrics
        self._begin_read = begin_read
        self._marks: set[bytes] = set()
        self._running: dict[str, RunningBridge] = {}
        self._remote_filters = RemoteFilters(door.broker)
        self.check(settings)

    def check(self, settings: dict[str, BridgeSettings]) -> None:
        """Find out whether these bridges could be made.

        Raises:
            SettingsError: aiomqtt is missing, or the variable of a password is not set.
        """
        module = check_bridges(settings)
        if module is not None:
            self._module = module

    async def open(self) -> None:
        """End the sessions of bridges that are no more; return when those that are have theirs, with their filters."""
        self._forget_others()
        await self._open(self._settings)

    def start(self) -> None:
        """Let all of them reach for the other brokers."""
        for bridge in self._running.values():
            bridge.start()

    async def stop(self) -> None:
        """Stop all of them."""
        await asyncio.gather(*[bridge.stop() for bridge in self._running.values()])
        self._running.clear()
        await asyncio.sleep(0)  # their sessions are left in a turn of its own

    async def reload(self, settings: dict[str, BridgeSettings]) -> None:
        """Go by other settings, which `check` has seen: bridges that differ are made anew, the others go on."""
        before, self._settings = self._settings, settings
        if before == settings:
            return
        others = {name: one for name, one in settings.items() if before.get(name) != one}
        ended = [name for name in self._running if before.get(name) != settings.get(name)]
        await asyncio.gather(*[self._end(name) for name in ended])
        await asyncio.sleep(0)  # as in `stop`
        self._forget_others()
        await self._open(others)
        for name in others:
            self._running[name].start()

    async def _open(self, settings: dict[str, BridgeSettings]) -> None:
        """Make bridges, and wait for their filters: what is published from then on is theirs."""
        opened = {}
        for name, one in settings.items():
            self._authenticator.let_in(PREFIX + name)
            bridge = self._running[name] = self._make(name, one, self._metrics.bridge(name))
            opened[bridge.open()] = name
        if opened:
            await asyncio.wait(opened, timeout=OPEN_S)
        for future, name in opened.items():
            if not future.done() or future.cancelled():
                LOGGER.warning("the session of a bridge has no filters yet: it goes on trying bridge=%s", name)

    async def _end(self, name: str) -> None:
        bridge = self._running[name]
        one = self._settings.get(name)
        await bridge.stop(for_good=one is None or self._module.place_of(one, name) != bridge.place)
        del self._running[name]

    def _make(self, name: str, settings: BridgeSettings, metrics: BridgeMetrics) -> RunningBridge:
        session = (PREFIX + name).encode()
        own = self._module.OwnSide(
            session,
            self._door.connect,
            partial(self._filters, session),
            self._begin_read,
            self._marks,
            self._remote_filters,
            self._takes,
            self._running.values,
        )
        return cast("RunningBridge", self._module.Bridge(name, settings, own, metrics))

    def _takes(self, topic: bytes) -> bool:
        try:
            check_topic(topic)
            if topic.startswith(DELAYED_PREFIX):
                self._door.publishing.delayed.split(topic)
        except MalformedPacketError:
            return False
        return True

    def _filters(self, client_id: bytes) -> Iterator[bytes]:
        return iter(self._door.sessions.filters_of(client_id))

    def _forget_others(self) -> None:
        """Let go of what is left of bridges that are no more."""
        self._remote_filters.forget_others(self._settings)
        self._metrics.forget_bridges(self._settings)
        sessions = self._door.sessions
        for outline in sessions.outlines():
            client = outline.client_id.decode(errors="replace")
            is_bridge = client.startswith(PREFIX) and outline.owner == outline.client_id
            session = sessions.find(outline.client_id) if is_bridge else None
            if session is not None and client.removeprefix(PREFIX) not in self._settings:
                LOGGER.info("the session of a removed bridge is ended client=%s", client)
                self._door.subscribing.end_session(session)
