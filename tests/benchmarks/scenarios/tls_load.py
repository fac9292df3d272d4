"""What TLS and WebSocket cost: loads of MQTT over them, and beside the same without, in turns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from tests.benchmarks.scenarios import mqtt_load
from tests.benchmarks.scenarios.load import Result
from tests.benchmarks.scenarios.mqtt5_load import together, total_of
from tests.support.certificates import client_context

TURNS = (False, True, True, False)  # by TLS: a server that slows down or warms up slows or warms both
WARM_S = 0.25


async def run_by_tls(load: Callable[[], Awaitable[Result]]) -> Result:
    """Run a load whose connections are made by TLS."""
    token = mqtt_load.secured_by.set(client_context())
    try:
        return await load()
    finally:
        mqtt_load.secured_by.reset(token)


async def run_by_websocket(load: Callable[[], Awaitable[Result]]) -> Result:
    """Run a load whose connections are made by WebSocket."""
    token = mqtt_load.by_websocket.set(True)
    try:
        return await load()
    finally:
        mqtt_load.by_websocket.reset(token)


async def run_in_turns(
    host: str,
    port: int,
    *,
    plain_port: int,
    secs: float,
    by: Callable[[Callable[[], Awaitable[Result]]], Awaitable[Result]] = run_by_tls,
    **parameters: Any,
) -> Result:
    """Run the MQTT load in turns for twice `secs`: carried `by` something at `port`, and plain at `plain_port`.

    What is counted is what came so; `more` holds its rate as a share of that without. What either lost is lost.
    """
    turns: dict[bool, list[Result]] = {False: [], True: []}
    for is_secure in TURNS:

        def load(at: int = port if is_secure else plain_port) -> Awaitable[Result]:
            return mqtt_load.run(host, at, secs=secs / 2, warm_s=WARM_S, **parameters)

        turns[is_secure].append(await (by(load) if is_secure else load()))
    plain, secure = together(turns[False]), together(turns[True])
    secure.lost += plain.lost
    secure.closed += plain.closed
    secure.total = total_of([*turns[False], *turns[True]])
    secure.more = {"beside_plain": secure.rate / plain.rate if plain.received else float("nan")}
    return secure
