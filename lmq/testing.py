"""A real broker for tests: a gateway in a process of its own, with ports and a data folder of its own.

    with Broker() as broker:
        connection = await aio_pika.connect(broker.amqp_url)

The fixtures `lmq_broker` and `lmq_url` for pytest are in `lmq.pytest_plugin`, which pytest finds by itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Self

READY_S = 60.0  # a machine that does much else; usually it takes a second or two
STOP_S = 10.0  # a gateway stops in under 5, mostly
LOG_LINES = 200  # of what the gateway wrote last, kept to say why it failed
SEGMENT_BYTES = 16 * 1024 * 1024  # of the log: small, so that a test needs little disk
DOORS = ("mqtt", "amqp", "namesrv", "broker", "admin")
# Run from the folder that this package was imported from, whatever else is called `gateway` where the tests run. The
# pipe on its input ends with the process of the tests, however that ends; then the gateway and its own folder go too.
RUN = f"""\
import os, runpy, shutil, signal, sys, threading
root, own_folder = sys.argv.pop(1), sys.argv.pop(1)
is_alone = threading.Event()

def remove_folder():
    if is_alone.is_set() and own_folder:
        shutil.rmtree(own_folder, ignore_errors=True)

def end_with_the_tests():
    os.read(0, 1)
    is_alone.set()
    os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait({STOP_S})
    remove_folder()
    os._exit(1)

threading.Thread(target=end_with_the_tests, daemon=True).start()
sys.path.insert(0, root)
try:
    runpy.run_module("gateway", run_name="__main__", alter_sys=True)
finally:
    remove_folder()
"""


class BrokerFailedError(Exception):
    """The gateway did not start, or ended by itself; the text has what it wrote last."""


class Broker:
    """One gateway, from `start` to `stop`. As a context manager it is started and stopped, and its folder removed.

    It does not outlive the process that started it, even if that is killed.

    Args:
        data_dir: The folder of its data, which is kept; a folder of its own that goes with the broker if not given.
        settings: What differs from the defaults, by name: `{"auth.mqtt_anonymous": False}`; values are Python's,
            or text as in the environment.
        ready_timeout_s: How long `start` waits until it is ready, on a machine that does much else.

    Raises:
        BrokerFailedError: It does not start, such as for a setting that does not exist.
    """

    def __init__(
        self,
        data_dir: str | os.PathLike[str] | None = None,
        settings: Mapping[str, object] | None = None,
        *,
        ready_timeout_s: float = READY_S,
    ) -> None:
        self._own_folder: tempfile.TemporaryDirectory[str] | None = None
        self._given_folder = None if data_dir is None else Path(data_dir)
        self._settings: dict[str, object] = {"store.segment_bytes": SEGMENT_BYTES, **(settings or {})}
        self._ready_timeout_s = ready_timeout_s
        self._process: subprocess.Popen[str] | None = None
        self._readers: list[threading.Thread] = []
        self._lines: deque[str] = deque(maxlen=LOG_LINES)
        self._addresses: dict[str, tuple[str, int]] = {}
        self._is_told = threading.Event()  # it is ready, or has ended before
        self._is_ready = False

    def __enter__(self) -> Self:
        try:
            self.start()
        except BrokerFailedError:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Where clients connect to

    def address(self, door: str) -> tuple[str, int]:
        """Return host and port of `mqtt`, `amqp`, `namesrv`, `broker` (both RocketMQ's) or `admin`.

        Raises:
            KeyError: The broker is not running, or there is no such door.
        """
        return self._addresses[door]

    @property
    def amqp_url(self) -> str:
        """For aio-pika, pika, Celery and others."""
        host, port = self.address("amqp")
        return f"amqp://guest:guest@{host}:{port}/"

    @property
    def mqtt_url(self) -> str:
        """For MQTT clients that take one; others take `mqtt_host` and `mqtt_port`."""
        return f"mqtt://{self.mqtt_host}:{self.mqtt_port}"

    @property
    def mqtt_host(self) -> str:
        """For MQTT clients."""
        return self.address("mqtt")[0]

    @property
    def mqtt_port(self) -> int:
        """For MQTT clients."""
        return self.address("mqtt")[1]

    @property
    def name_server(self) -> str:
        """HOST:PORT for RocketMQ clients and the SDK."""
        host, port = self.address("namesrv")
        return f"{host}:{port}"

    @property
    def admin_url(self) -> str:
        """The HTTP API."""
        host, port = self.address("admin")
        return f"http://{host}:{port}"

    @property
    def data_dir(self) -> Path:
        """The folder of its data.

        Raises:
            BrokerFailedError: It was never started.
        """
        if self._given_folder is not None:
            return self._given_folder
        if self._own_folder is None:
            raise BrokerFailedError("the broker has no folder before it is started")
        return Path(self._own_folder.name)

    @property
    def log(self) -> str:
        """What it wrote last."""
        return "\n".join(self._lines)

    # Its life

    def start(self) -> None:
        """Start it and wait until it is ready; ports are new each time.

        Raises:
            BrokerFailedError: It does not come up, or not in time, or runs already.
        """
        if self._process is not None and self._process.poll() is None:
            raise BrokerFailedError("the gateway runs already; stop or kill it before it is started again")
        if self._given_folder is None and self._own_folder is None:
            self._own_folder = tempfile.TemporaryDirectory(prefix="lmq-")
        self._addresses = {}
        self._is_told.clear()
        self._is_ready = False
        options = [part for door in DOORS for part in (f"--{door}", "127.0.0.1:0")]
        command = ["serve", "--data-dir", str(self.data_dir), *options]
        self._process = process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-P", "-c", RUN, str(Path(__file__).resolve().parents[1]), self._own_path(), *command],
            env=self._environment(),
            stdin=subprocess.PIPE,  # nothing is written: it is open as long as we are
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        assert process.stdout is not None
        assert process.stderr is not None
        self._readers = [
            threading.Thread(target=self._read_answers, args=(process.stdout,), daemon=True),
            threading.Thread(target=self._read_log, args=(process.stderr,), daemon=True),
        ]
        for reader in self._readers:
            reader.start()
        is_told = self._is_told.wait(self._ready_timeout_s)
        if not self._is_ready:
            self.kill()
            what = "did not start" if is_told else f"was not ready within {self._ready_timeout_s:g} s"
            raise BrokerFailedError(f"the gateway {what}:\n{self.log}")

    def stop(self) -> None:
        """Stop it cleanly; its data stays for `start`. Harmless when it is not running."""
        self._end(is_killed=False)

    def kill(self) -> None:
        """End it as a crash does (kill -9); its data stays for `start`."""
        self._end(is_killed=True)

    def close(self) -> None:
        """Stop it, and remove its folder if that is its own."""
        self.stop()
        if self._own_folder is not None:
            self._own_folder.cleanup()
            self._own_folder = None

    def _end(self, *, is_killed: bool) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill() if is_killed else process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for reader in self._readers:
            reader.join()
        assert process.stdin is not None
        process.stdin.close()
        self._addresses = {}

    def _own_path(self) -> str:
        """Return the folder that goes with the broker, an empty text if it is the tests' to keep."""
        return "" if self._own_folder is None else self._own_folder.name

    def _environment(self) -> dict[str, str]:
        """Return ours without settings of a gateway, and with those of this one."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("LMQ_")}
        return {**kept, **_variables_of(self._settings), "PYTHONUNBUFFERED": "1"}

    def _read_answers(self, stream: IO[str]) -> None:
        with stream:
            for line in stream:
                word, _, rest = line.strip().partition(" ")
                if word == "listening":
                    door, _, address = rest.partition(" ")
                    host, _, port = address.rpartition(":")
                    self._addresses[door] = (host.strip("[]"), int(port))
                elif word == "ready":
                    self._is_ready = True
                    self._is_told.set()
        self._is_told.set()

    def _read_log(self, stream: IO[str]) -> None:
        with stream:
            self._lines.extend(line.rstrip("\n") for line in stream)


def _variables_of(settings: Mapping[str, object]) -> dict[str, str]:
    """Return settings as variables of the environment.

    Names there are not told apart by capitals, but those of users and the like are: a name with capitals goes, with all
    below it, into the JSON of the table that it is in.
    """
    told: dict[str, object] = {}
    for name, value in settings.items():
        parts = name.split(".")
        place = next((i for i, part in enumerate(parts) if part != part.lower()), len(parts))
        if not 0 < place < len(parts):
            told[name] = _joined(value, told[name]) if name in told else value
            continue
        inner = value
        for part in reversed(parts[place:]):
            inner = {part: inner}
        table = ".".join(parts[:place])
        told[table] = _joined(told.get(table), inner)
    return {f"LMQ_{name.replace('.', '__').upper()}": _as_text(value) for name, value in told.items()}


def _joined(table: object, more: object) -> object:
    """Return two tables as one, in all depths; where both say something it is what `more` says."""
    if not isinstance(table, Mapping) or not isinstance(more, Mapping):
        return more
    return {**table, **{name: _joined(table.get(name), value) for name, value in more.items()}}


def _as_text(value: object) -> str:
    """Return a setting as the environment says it: JSON for what is no text."""
    return os.fspath(value) if isinstance(value, (str, os.PathLike)) else json.dumps(value)
