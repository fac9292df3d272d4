"""A gateway for tests: as a process of its own that can be killed, or inside the test's loop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import asynccontextmanager
from pathlib import Path

from core.settings import FlushSettings, StoreSettings
from gateway.app import Gateway
from gateway.settings.listen import find_address
from gateway.settings.models import (
    AdminSettings,
    AmqpSettings,
    AuthSettings,
    GatewaySettings,
    MqttSettings,
    RocketmqSettings,
)
from tests.support.sources import ROOT

READY_S = 90  # on a machine that does other things too; a test may take 120
STOP_S = 60
SEGMENT_BYTES = 4 * 1024 * 1024  # small, so that tests roll segments and need little disk
ANY_PORT = "127.0.0.1:0"
DOORS = ("mqtt", "amqp", "namesrv", "broker", "admin")


class GatewayProcess:
    """`lmq serve` on ports that the system picks; killed and started again over the same folder.

    Use as a context manager. `address("mqtt")` is the host and port of a door. `doors` get a port by a flag, and the
    others listen as the options say. Without `doors` there is no admin door: to load it is half of a start.
    """

    def __init__(self, data_dir, *options, env=None, prefix=(), doors=None):
        self.data_dir = Path(data_dir)
        self.options = options
        self.flags = [part for door in (DOORS if doors is None else doors) for part in (f"--{door}", ANY_PORT)]
        if doors is None:
            self.flags[-1] = "off"
        self.prefix = prefix  # a command that becomes the gateway's, such as nohup
        self.env = {**os.environ, "LMQ_STORE__SEGMENT_BYTES": str(SEGMENT_BYTES), **(env or {})}
        self.listening = {}
        self.all_listening = {}
        self.errors = []
        self.process = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc_info):
        if self.process is not None and self.process.poll() is None:
            self.kill()

    def start(self):
        """Start, and wait until it is ready."""
        self.listening, self.all_listening = {}, {}  # the first address of each name, and each
        self.process = subprocess.Popen(
            [
                *self.prefix,
                sys.executable,
                "-m",
                "gateway",
                "serve",
                "--data-dir",
                str(self.data_dir),
                *self.flags,
                *self.options,
            ],
            cwd=ROOT,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        threading.Thread(target=self._collect_errors, args=(self.process.stderr,), daemon=True).start()
        watchdog = threading.Timer(READY_S, self.process.kill)
        watchdog.start()
        try:
            self._wait_until_ready()
        finally:
            watchdog.cancel()

    def _collect_errors(self, stream):
        with stream:
            self.errors.extend(stream)

    def _wait_until_ready(self):
        for line in self.process.stdout:
            word, _, rest = line.strip().partition(" ")
            if word == "listening":
                door, _, address = rest.partition(" ")
                self.listening.setdefault(door, find_address(address))
                self.all_listening.setdefault(door, []).append(find_address(address))
            elif word == "ready":
                return
        self.process.wait()
        self.process.stdout.close()
        raise AssertionError("the gateway did not start:\n" + "".join(self.errors))

    def address(self, door):
        """Return the host and port of a door."""
        return self.listening[door]

    def port(self, door):
        """Return the port of a door."""
        return self.listening[door][1]

    def kill(self):
        """Kill it with -9."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()

    def stop(self):
        """Stop it cleanly; return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(STOP_S)
        self.process.stdout.close()
        return code

    def restart(self):
        """Kill it with -9 and start it over the same folder; ports are new."""
        self.kill()
        self.start()


def make_settings(data_dir, **blocks):
    """Return settings with every port picked by the system and small segments; `blocks` replace whole blocks."""
    values = {
        "data_dir": data_dir,
        "store": StoreSettings(segment_bytes=SEGMENT_BYTES, flush=FlushSettings(mode="sync")),
        "mqtt": MqttSettings(listen=ANY_PORT),
        "amqp": AmqpSettings(listen=ANY_PORT),
        "rocketmq": RocketmqSettings(namesrv=ANY_PORT, broker=ANY_PORT),
        "admin": AdminSettings(listen="off"),
        "auth": AuthSettings(),
    }
    return GatewaySettings(**{**values, **blocks})


def make_closed_settings(data_dir, **blocks):
    """Return settings with all doors closed but those that `blocks` are of."""
    closed = {
        "mqtt": MqttSettings(listen="off"),
        "amqp": AmqpSettings(listen="off"),
        "rocketmq": RocketmqSettings(namesrv="off", broker="off"),
        "admin": AdminSettings(listen="off"),
    }
    return make_settings(data_dir, **{**closed, **blocks})


@asynccontextmanager
async def running_gateway(data_dir, *, free_bytes=None, **blocks):
    """Yield a started `Gateway` on the test's own loop: `gateway.listening["mqtt"]` is a host and port.

    `free_bytes` tells how much room the disk has, in place of the file system.
    """
    gateway = Gateway(make_settings(data_dir, **blocks), free_bytes=free_bytes)
    try:
        await gateway.start()
        yield gateway
    finally:
        await gateway.stop()
