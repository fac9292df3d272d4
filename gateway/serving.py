"""Runs one gateway as this process, until a signal ends it or the disk refuses a sync."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import uvloop

from core.errors import LmqError
from gateway.app import Gateway
from gateway.collector import Collector
from gateway.logs import set_up_logs
from gateway.net.listener import ListenError
from gateway.settings import GatewaySettings, SettingsError, load_settings

EXIT_FAILED = 1
USE_ERRORS = (SettingsError, ListenError, LmqError)  # what an operator can put right


def run_gateway(config: Path | None, flags: Mapping[str, Any]) -> int:
    """Run a gateway until SIGTERM or SIGINT; return the exit code.

    Args:
        config: The TOML file of settings, None for none.
        flags: What the command line says, as `load_settings` takes it.

    Raises:
        SettingsError, ListenError, LmqError: It cannot start; `USE_ERRORS` are these.
    """
    settings = load_settings(config, flags)
    set_up_logs(settings.log.level, settings.log.format)
    return uvloop.run(_serve(settings))


async def _serve(settings: GatewaySettings) -> int:
    wanted = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, wanted.set)
    gateway = Gateway(settings)
    collector = Collector()
    try:
        await gateway.start()
        collector.start()
        print("\n".join([*gateway.lines(), "ready"]), flush=True)
        waits = [asyncio.create_task(event.wait()) for event in (wanted, gateway.stopped)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
    finally:
        await gateway.stop()
        collector.stop()
    return EXIT_FAILED if gateway.stopped.is_set() else 0
