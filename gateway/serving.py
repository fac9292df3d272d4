"""Runs one gateway as this process, until a signal ends it or the disk refuses a sync."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import uvloop

from core.errors import LmqError
from gateway.app import Gateway
from gateway.auth.rule_book import RulesError
from gateway.logs import set_up_logs
from gateway.net.descriptors import DescriptorsError, raise_limit
from gateway.net.listener import ListenError
from gateway.process.collector import Collector
from gateway.process.core_dumps import forbid_core_dumps
from gateway.process.service_manager import ServiceManager
from gateway.settings.models import GatewaySettings, SettingsError
from gateway.settings.reading import load_settings

LOGGER = logging.getLogger(__name__)

EXIT_FAILED = 1
USE_ERRORS = (SettingsError, ListenError, DescriptorsError, LmqError)  # what an operator can put right


def run_gateway(config: Path | None, flags: Mapping[str, Any]) -> int:
    """Run a gateway until SIGTERM or SIGINT; return the exit code.

    Args:
        config: The TOML file of settings, None for none.
        flags: What the command line says, as `load_settings` takes it.

    Raises:
        SettingsError, ListenError, DescriptorsError, LmqError: It cannot start; `USE_ERRORS` are these.
    """
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until `_serve` hears it: it never ends a gateway
    settings = load_settings(config, flags)
    set_up_logs(settings.log.level, settings.log.format)
    if not settings.limits.core_dumps:
        forbid_core_dumps()
    raise_limit()
    return uvloop.run(_serve(settings, lambda: load_settings(config, flags)))


async def _serve(settings: GatewaySettings, load: Callable[[], GatewaySettings]) -> int:
    wanted, hung_up = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, hung_up.set)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, wanted.set)
    gateway = Gateway(settings)
    reloader: asyncio.Task[None] | None = None
    collector = Collector()
    manager = ServiceManager(os.environ)
    try:
        await gateway.start()
        collector.start()
        _tell([*gateway.lines(), "ready"])
        manager.tell_ready()
        reloader = asyncio.create_task(_reload(gateway, load, hung_up, manager))
        waits = [asyncio.create_task(event.wait()) for event in (wanted, gateway.stopped)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
    finally:
        if reloader is not None:
            reloader.cancel()
        manager.tell_stopping()
        await gateway.stop()
        collector.stop()
    return EXIT_FAILED if gateway.stopped.is_set() else 0


def _tell(lines: list[str]) -> None:
    """Print lines; that nobody reads them, or there is no room for them, keeps no gateway from its work."""
    try:
        print("\n".join(lines), flush=True)
    except OSError as error:
        LOGGER.warning("cannot print the listening addresses on the standard output: %s", error.strerror)
        nowhere = os.open(os.devnull, os.O_WRONLY)  # for what is left in the buffer, which the end of Python writes out
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


async def _reload(
    gateway: Gateway, load: Callable[[], GatewaySettings], hung_up: asyncio.Event, manager: ServiceManager
) -> None:
    """Have the settings read again each time that a SIGHUP came; two that come together are one."""
    while True:
        await hung_up.wait()
        hung_up.clear()
        manager.tell_reloading()
        try:
            settings = await asyncio.to_thread(load)  # a file, perhaps of a network
            await gateway.reload(settings)
        except SettingsError as error:
            LOGGER.error("settings cannot be read again, nothing changes: %s", error)  # noqa: TRY400 - one line
        except RulesError as error:
            LOGGER.error("settings were read again, but %s", error)  # noqa: TRY400 - one line
        except Exception:
            LOGGER.exception("settings cannot be read again")
        manager.tell_ready()  # systemd wants this in either case: what went wrong is in the log
