"""Runs publishers and consumers, and tells what they did."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from gateway.commands.bench.figures import Tally
from gateway.commands.bench.peers import Pace
from gateway.commands.bench.plan import Plan
from gateway.commands.doors.place import Door, Place

STILL_S = 2.0  # nothing came for so long: nothing more will
LOOK_S = 0.02  # chosen: a run ends that much late at most, of seconds
AT_ONCE = 100  # connections that are opened at the same time; chosen: fewer than any door's backlog


async def run(place: Place, plan: Plan) -> dict[str, Any]:
    """Run a load to its end; return what each side did.

    Raises:
        LinkError: A peer is not let in, refused, or lost.
    """
    sent, came = Tally(), Tally()
    publishers = _make_publishers(place, plan, sent)
    consumers = _make_consumers(place, plan, came)
    try:
        if place.door is Door.ROCKETMQ:  # its topic is there when the first message was sent
            await _open(publishers)
            await _open(consumers)
        else:
            await _open(consumers)
            await _open(publishers)
        return await _measure(place, plan, publishers, consumers, (sent, came))
    finally:
        await asyncio.gather(*(_close(peer) for peer in (*publishers, *consumers)))


async def _measure(
    place: Place, plan: Plan, publishers: Sequence[Any], consumers: Sequence[Any], tallies: tuple[Tally, Tally]
) -> dict[str, Any]:
    sent, came = tallies
    for consumer in consumers:
        if place.door is Door.ROCKETMQ:
            consumer.begin()
    began_s = time.perf_counter()
    for publisher in publishers:
        publisher.begin()
    until_s = None if plan.seconds is None else began_s + plan.seconds
    if publishers:
        await _wait([publisher.over for publisher in publishers], until_s)
    if consumers:
        copies = 1 if place.door is Door.AMQP else len(consumers)
        wanted = (sent.count if publishers else plan.messages) * copies
        await _wait_for(came, wanted, consumers, until_s, gives_up=bool(publishers))
    return {
        "door": str(place.door),
        "server": place.address,
        "name": plan.name,
        "qos": plan.qos,
        "size": plan.size,
        "publishers": {"clients": plan.publishers, **sent.tell(began_s)} if publishers else None,
        "consumers": {"clients": plan.consumers, **came.tell(began_s if publishers else 0.0)} if consumers else None,
    }


async def _wait(futures: Sequence[asyncio.Future[None]], until_s: float | None) -> None:
    """Wait until all is done, one failed, or the time is over."""
    left_s = None if until_s is None else max(until_s - time.perf_counter(), 0.0)
    done, _ = await asyncio.wait(futures, timeout=left_s, return_when=asyncio.FIRST_EXCEPTION)
    for future in done:
        future.result()


async def _wait_for(
    came: Tally, wanted: int, consumers: Sequence[Any], until_s: float | None, *, gives_up: bool
) -> None:
    """Wait until so many messages came, the time is over, or, where it `gives_up`, nothing comes any more."""
    seen, still_since_s = -1, time.perf_counter()
    while came.count < wanted:
        now_s = time.perf_counter()
        if came.count != seen:
            seen, still_since_s = came.count, now_s
        if (gives_up and now_s - still_since_s > STILL_S) or (until_s is not None and now_s > until_s):
            return
        for consumer in consumers:
            if consumer.over.done():
                consumer.over.result()
        await asyncio.sleep(LOOK_S)


def _make_publishers(place: Place, plan: Plan, tally: Tally) -> list[Any]:
    from gateway.commands.bench.amqp import AmqpPublisher
    from gateway.commands.bench.mqtt import MqttPublisher
    from gateway.commands.bench.rocketmq import RocketmqPublisher

    made: list[Any] = []
    for number in range(plan.publishers):
        share = plan.messages // plan.publishers + (number < plan.messages % plan.publishers)
        pace = Pace(share, None if plan.rate is None else plan.rate / plan.publishers, plan.window)
        if place.door is Door.MQTT:
            made.append(MqttPublisher(place, tally, pace, plan))
        elif place.door is Door.AMQP:
            made.append(AmqpPublisher(place, tally, pace, plan))
        else:
            made.append(RocketmqPublisher(place, tally, pace, plan))
    return made


def _make_consumers(place: Place, plan: Plan, tally: Tally) -> list[Any]:
    from gateway.commands.bench.amqp import AmqpConsumer
    from gateway.commands.bench.mqtt import MqttConsumer
    from gateway.commands.bench.rocketmq import RocketmqConsumer

    if place.door is Door.MQTT:
        return [MqttConsumer(place, tally, plan.name, plan.qos) for _ in range(plan.consumers)]
    if place.door is Door.AMQP:
        return [AmqpConsumer(place, tally, plan.name, plan.qos) for _ in range(plan.consumers)]
    return [RocketmqConsumer(place, tally, plan.name) for _ in range(plan.consumers)]


async def _open(peers: Sequence[Any]) -> None:
    for start in range(0, len(peers), AT_ONCE):
        await asyncio.gather(*(peer.open() for peer in peers[start : start + AT_ONCE]))


async def _close(peer: Any) -> None:  # noqa: ANN401 - of any door
    await peer.stop()
