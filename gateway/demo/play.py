"""One run of the demo: start everything, let it run, wait for the last message, and judge."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.live import Live

from gateway.demo.child import GatewayProcess, start_gateway
from gateway.demo.consumers import CLIENT_ERRORS, RunningConsumer, make_consumer
from gateway.demo.fleet import Fleet
from gateway.demo.ledger import Ledger
from gateway.demo.plan import CONSUMERS, Device
from gateway.demo.report_check import check_report
from gateway.demo.screen import Rates, live_view, verdict_view

_MARKER = ".lmq-demo"  # a data folder with it was made by the demo, and may be made anew
_QUIET_S = 10  # without an arrival for so long, what is missing is lost
_LATE_S = 0.5  # when all is there, something that was invented may still come
_LOOKS_A_SECOND = 5  # chosen: quick enough to look live
_NOT_INTERACTIVE_S = 5  # between two lines of progress where nobody watches


class DemoFailedError(RuntimeError):
    """The demo could not run to its end."""


@dataclass(frozen=True)
class DemoOptions:
    """How long, how much, and where."""

    seconds: float
    devices: int
    rate: float  # messages a second from each device
    data_dir: Path
    report_dir: Path
    makes_report: bool = True


async def play(options: DemoOptions, console: Console) -> bool:
    """Run the demo and say how it went; return whether all counts are exact."""
    make_room(options.data_dir)
    ledger = Ledger(CONSUMERS)
    log_path = options.data_dir.with_name(f"{options.data_dir.name}.log")
    async with start_gateway(options.data_dir, log_path) as gateway:
        _say_hello(console, options, gateway)
        faults = await _try_traffic(options, gateway, ledger, console)
        verdicts = ledger.verdicts()
        console.print(verdict_view(verdicts))
        if options.makes_report:
            faults += await _make_report(options, ledger, console)
    for fault in faults:
        console.print(fault, style="red")
    is_good = all(verdict.is_good for verdict in verdicts) and not faults
    _say_goodbye(console, options, ledger, is_good=is_good)
    return is_good


def make_room(data_dir: Path) -> None:
    """Make an empty data folder, in place of one that an earlier demo made.

    Raises:
        DemoFailedError: The folder has other contents.
    """
    if data_dir.exists() and any(data_dir.iterdir()):
        if not (data_dir / _MARKER).exists():
            raise DemoFailedError(f"{data_dir} was not made by the demo; name another folder")
        shutil.rmtree(data_dir)
    data_dir.mkdir(parents=True, exist_ok=True)
    (data_dir / _MARKER).touch()


def _say_hello(console: Console, options: DemoOptions, gateway: GatewayProcess) -> None:
    doors = ", ".join(f"{name} {host}:{port}" for name, (host, port) in gateway.addresses.items())
    console.print(f"gateway {gateway.pid} listens on {doors}; its data is in {options.data_dir}")
    console.print(f"{options.devices} devices publish for {options.seconds:g} s, {len(CONSUMERS)} consumers read\n")


async def _try_traffic(options: DemoOptions, gateway: GatewayProcess, ledger: Ledger, console: Console) -> list[str]:
    """Let messages flow; return what went wrong with the clients, if anything did."""
    faults: list[str] = []
    try:
        await _run_traffic(options, gateway, ledger, console)
    except* CLIENT_ERRORS as errors:
        faults += {f"a client failed: {type(leaf).__name__}: {leaf}" for leaf in _leaves(errors)}
    return faults


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from _leaves(part)
    else:
        yield error


async def _run_traffic(options: DemoOptions, gateway: GatewayProcess, ledger: Ledger, console: Console) -> None:
    devices = [Device(number) for number in range(options.devices)]
    fleet = Fleet(devices, gateway.addresses["mqtt"], options.rate, ledger)
    consumers = [make_consumer(own, gateway.addresses) for own in ledger.arrivals.values()]
    async with AsyncExitStack() as stack:
        show = asyncio.create_task(_show(ledger, fleet, console))
        stack.callback(show.cancel)
        for consumer in consumers:
            await consumer.start()
            stack.push_async_callback(consumer.stop)
        async with asyncio.TaskGroup() as group:
            group.create_task(_send_away(fleet, ledger, consumers, options.seconds))
            group.create_task(fleet.run(options.seconds))
        await _wait_for_the_last(ledger)


async def _send_away(fleet: Fleet, ledger: Ledger, consumers: Sequence[RunningConsumer], seconds: float) -> None:
    """Take the connection from clients that can do without one for a while, half-way through."""
    await fleet.publishing.wait()
    await asyncio.sleep(seconds / 3)
    for consumer, own in zip(consumers, ledger.arrivals.values(), strict=True):
        if own.consumer.is_away_for_a_while:
            await consumer.be_away(seconds / 6)


async def _wait_for_the_last(ledger: Ledger) -> None:
    quiet_since = time.monotonic()
    received = -1
    while not ledger.is_complete() and time.monotonic() - quiet_since < _QUIET_S:
        if ledger.received_count() != received:
            received = ledger.received_count()
            quiet_since = time.monotonic()
        await asyncio.sleep(1 / _LOOKS_A_SECOND)
    await asyncio.sleep(_LATE_S)


async def _show(ledger: Ledger, fleet: Fleet, console: Console) -> None:
    rates = Rates()
    with Live(console=console, auto_refresh=False, transient=True) as live:
        told_at = 0.0
        while True:
            now = time.monotonic()
            if console.is_terminal:
                live.update(live_view(ledger, rates, "live", fleet.connected, now), refresh=True)
            elif now - told_at >= _NOT_INTERACTIVE_S:
                told_at = now
                received = ledger.received_count()
                console.print(f"{fleet.connected} devices, {len(ledger.sent)} sent, {received} received")
            await asyncio.sleep(1 / _LOOKS_A_SECOND)


async def _make_report(options: DemoOptions, ledger: Ledger, console: Console) -> list[str]:
    """Let Spark read the log that the gateway still has open; return what it counts otherwise than was sent."""
    started = time.monotonic()
    log_path = options.report_dir.with_name(f"{options.report_dir.name}.log")
    report_dir = options.report_dir
    report_dir.parent.mkdir(parents=True, exist_ok=True)
    with console.status("Spark reads the log ..."), log_path.open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "spark_analytics", "fan-out",
            "--data-dir", str(options.data_dir), "--out", str(report_dir),
            stdout=log, stderr=log, stdin=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        code = await process.wait()
    if code:
        return [f"the report failed with exit code {code}; see {log_path}"]
    report = json.loads((report_dir / "report.json").read_text(encoding="utf-8"))
    totals = report["totals"]
    console.print(
        f"Spark counts {totals['messages']:,} messages, {totals['dispatches']:,} dispatches into "
        f"{totals['queues']} light queues; {totals['stored_once_bytes'] / 1e6:.1f} MB stored once, "
        f"{totals['copied_bytes'] / 1e6:.1f} MB as copies ({time.monotonic() - started:.1f} s)"
    )
    return check_report(report, ledger)


def _say_goodbye(console: Console, options: DemoOptions, ledger: Ledger, *, is_good: bool) -> None:
    deliveries = ledger.received_count()
    if is_good:
        console.print(
            f"{len(ledger.sent):,} sent, {deliveries:,} delivered: nothing lost, nothing invented", style="bold green"
        )
    else:
        console.print("the counts do not agree", style="bold red")
    if options.makes_report:
        console.print(f"look at {options.report_dir / 'index.html'}")
