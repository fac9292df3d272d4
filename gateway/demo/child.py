"""The gateway under the demo: `lmq serve` as a process of its own, on ports that are free."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from gateway.address import parse_address

_READY_S_MAX = 30  # chosen: a start takes a second or two, and longer on a busy machine
_STOP_S_MAX = 10  # a gateway stops in under 5, mostly


class GatewayFailedError(RuntimeError):
    """The gateway did not start, or ended before it was told to."""


class GatewayProcess:
    """One running gateway."""

    def __init__(self, process: asyncio.subprocess.Process, addresses: dict[str, tuple[str, int]]) -> None:
        self._process = process
        self.addresses = addresses
        """Host and port of each door, by its name on the `listening` lines."""

    @property
    def pid(self) -> int:
        """Return the number of its process."""
        return self._process.pid

    async def stop(self) -> int:
        """Stop it as an operator would; return its exit code."""
        if self._process.returncode is None:
            self._process.terminate()
        try:
            return await asyncio.wait_for(self._process.wait(), _STOP_S_MAX)
        except TimeoutError:
            self._process.kill()
            raise GatewayFailedError(f"the gateway did not stop in {_STOP_S_MAX} s") from None


@asynccontextmanager
async def start_gateway(data_dir: Path, log_path: Path) -> AsyncIterator[GatewayProcess]:
    """Run a gateway with its data in `data_dir` and what it says in `log_path`; stop it at the end.

    Raises:
        GatewayFailedError: It did not come up, or did not stop cleanly.
    """
    doors = [part for door in ("mqtt", "amqp", "namesrv", "broker", "admin") for part in (f"--{door}", "127.0.0.1:0")]
    with log_path.open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "gateway", "serve", "--data-dir", str(data_dir), *doors,
            stdout=asyncio.subprocess.PIPE, stderr=log, stdin=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
    try:
        gateway = GatewayProcess(process, await _wait_until_ready(process, log_path))
        yield gateway
        code = await gateway.stop()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if code:
        raise GatewayFailedError(f"the gateway ended with exit code {code}; see {log_path}")


async def _wait_until_ready(process: asyncio.subprocess.Process, log_path: Path) -> dict[str, tuple[str, int]]:
    try:
        addresses = await asyncio.wait_for(_read_addresses(process), _READY_S_MAX)
    except TimeoutError:
        raise GatewayFailedError(f"the gateway was not ready in {_READY_S_MAX} s; see {log_path}") from None
    if addresses is None:
        raise GatewayFailedError(f"the gateway ended before it was ready; see {log_path}")
    return addresses


async def _read_addresses(process: asyncio.subprocess.Process) -> dict[str, tuple[str, int]] | None:
    assert process.stdout is not None
    addresses: dict[str, tuple[str, int]] = {}
    async for line in process.stdout:
        words = line.decode().split()
        if words == ["ready"]:
            return addresses
        if len(words) == 3 and words[0] == "listening":  # noqa: PLR2004 - listening DOOR HOST:PORT
            addresses[words[1]] = parse_address(words[2])
    return None
