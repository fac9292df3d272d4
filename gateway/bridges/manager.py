"""All bridges of a gateway: they start when its doors are open, and stop before them."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
from collections.abc import Iterator
from functools import partial
from typing import Protocol, cast

from core.metrics import BridgeMetrics, Metrics
from gateway.auth.authenticator import OWN_PREFIX, Authenticator
from gateway.bridge_settings import BridgeSettings
from gateway.bridges.local_link import Now
from gateway.mqtt.door import MqttDoor
from gateway.settings import SettingsError

LOGGER = logging.getLogger(__name__)

PREFIX = OWN_PREFIX  # of the user and the client identifier that a bridge's session has


class RunningBridge(Protocol):
    """A bridge, whatever it needs to be imported for."""

    def start(self) -> None:
        """Begin."""

    async def stop(self) -> None:
        """End."""


class Bridges:
    """The bridges that the settings name.

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
        self._metrics = metrics
        self._begin_read = begin_read
        self._marks: set[bytes] = set()
        self._running: list[RunningBridge] = []
        for name, one in settings.items():
            authenticator.let_in(PREFIX + name)
            if one.password_env and one.password_env not in os.environ:
                raise SettingsError(f"bridges.{name}.password_env: {one.password_env} is not set")
        if settings:
            try:
                self._module = importlib.import_module("gateway.bridges.bridge")
            except ImportError as error:
                why = f"bridges need aiomqtt, which cannot be imported ({error}): pip install 'lmq-gateway[bridge]'"
                raise SettingsError(why) from error

    def start(self) -> None:
        """End the sessions of bridges that are no more, and start those that are."""
        self._end_others()
        for name, settings in self._settings.items():
            bridge = self._make(name, settings, self._metrics.bridge(name))
            self._running.append(bridge)
            bridge.start()

    async def stop(self) -> None:
        """Stop all of them."""
        running, self._running = self._running, []
        await asyncio.gather(*[bridge.stop() for bridge in running])
        await asyncio.sleep(0)  # their sessions are left in a turn of its own

    def _make(self, name: str, settings: BridgeSettings, metrics: BridgeMetrics) -> RunningBridge:
        session = (PREFIX + name).encode()
        own = self._module.OwnSide(
            session, self._door.connect, partial(self._filters, session), self._begin_read, self._marks
        )
        return cast("RunningBridge", self._module.Bridge(name, settings, own, metrics))

    def _filters(self, client_id: bytes) -> Iterator[bytes]:
        session = self._door.sessions.find(client_id)
        return iter([] if session is None else list(session.subscriptions))

    def _end_others(self) -> None:
        for session in list(self._door.sessions):
            client = session.client_id.decode(errors="replace")
            is_bridge = client.startswith(PREFIX) and session.owner == session.client_id
            if is_bridge and client.removeprefix(PREFIX) not in self._settings:
                LOGGER.info("the session of a bridge that is no more is ended client=%s", client)
                self._door.subscribing.end_session(session)
