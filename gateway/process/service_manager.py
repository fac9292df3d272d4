"""Tells systemd when the gateway is ready, reads its settings again and stops, where a unit of Type=notify runs it.

Source: sd_notify(3). One datagram of NAME=VALUE lines goes to the socket that the variable NOTIFY_SOCKET names.
"""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Mapping

LOGGER = logging.getLogger(__name__)


class ServiceManager:
    """What started this process and asked to be told how far it is; with no such program every call does nothing."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Remember the socket that `environment` names: a path, or an abstract name behind an @."""
        name = environment.get("NOTIFY_SOCKET", "")
        self._address = f"\0{name[1:]}" if name.startswith("@") else name

    def tell_ready(self) -> None:
        """Say that every door takes connections, or that the settings were read again."""
        self._tell("READY=1")

    def tell_reloading(self) -> None:
        """Say that the settings are read again; `tell_ready` says that this is over."""
        self._tell("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def tell_stopping(self) -> None:
        """Say that the gateway stops."""
        self._tell("STOPPING=1")

    def _tell(self, *lines: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.settimeout(0)  # a manager that does not read holds up no client
                sender.sendto("\n".join(lines).encode(), self._address)
        except OSError as error:
            LOGGER.warning("cannot tell the service manager %s: %s", lines[0], error)
