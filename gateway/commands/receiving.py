"""Commands that show messages as they come: a copy of all, or a share of a queue's work."""

from __future__ import annotations

from typing import Annotated

import typer

from gateway.commands.completing import complete_queues
from gateway.commands.doors.place import Door, Place, at_door
from gateway.commands.doors.showing import Output, show
from gateway.commands.doors.starts import read_start
from gateway.commands.doors.traffic import GROUP, AckMode, Incoming, Wanted
from gateway.commands.refusing import EXIT_NOTHING, refuse

HELD_MAX = 65_535  # AMQP's prefetch has two bytes
QosOption = Annotated[int, typer.Option("--qos", "-q", min=0, max=2, help="MQTT: highest QoS.")]
FromOption = Annotated[
    str | None,
    typer.Option("--from", help="Begin at: first, an offset, 2026-01-31T12:00, or -1h (an hour ago)."),
]
CountOption = Annotated[int | None, typer.Option("--count", "-c", min=1, help="End after this many messages.")]
IdleOption = Annotated[
    float | None, typer.Option("--idle", min=0.1, help="End after this many seconds without a message.")
]
OutputOption = Annotated[
    Output, typer.Option("--output", "-o", help="text (topic and body), body, hex, or json (with all properties).")
]
JsonOption = Annotated[bool, typer.Option("--json", help="The same as --output json.")]
TagsOption = Annotated[str, typer.Option("--tags", help="RocketMQ: only messages with these tags, such as a || b.")]


@at_door(Door.MQTT)
def subscribe(
    place: Place,
    names: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="MQTT filters, AMQP binding keys, or RocketMQ topics.")
    ],
    *,
    exchange: Annotated[
        str, typer.Option("--exchange", "-e", help="AMQP: the exchange to bind the keys to.")
    ] = "amq.topic",
    start: FromOption = None,
    qos: QosOption = 1,
    tags: TagsOption = "*",
    count: CountOption = None,
    idle: IdleOption = None,
    output: OutputOption = Output.TEXT,
    as_json: JsonOption = False,
) -> None:
    """Show what is published, until Ctrl-C, without taking it from others."""
    begin = None if start is None else read_start(start)
    wanted = Wanted(names, shares=False, qos=qos, start=begin, count=count, exchange=exchange, tags=tags)
    _show(place, wanted, idle, Output.JSON if as_json else output)


@at_door(Door.AMQP)
def consume(
    place: Place,
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...", help="AMQP queues, MQTT filters, or RocketMQ topics.", autocompletion=complete_queues
        ),
    ],
    *,
    ackmode: Annotated[
        AckMode,
        typer.Option("--ackmode", help="ack after showing a message, none (before), requeue (give back), or reject."),
    ] = AckMode.ACK,
    group: Annotated[str, typer.Option("--group", help="MQTT, RocketMQ: the group that shares the work.")] = GROUP,
    start: FromOption = None,
    qos: QosOption = 1,
    tags: TagsOption = "*",
    count: CountOption = None,
    idle: IdleOption = None,
    output: OutputOption = Output.TEXT,
    as_json: JsonOption = False,
) -> None:
    """Take messages of a queue or group and show them, until Ctrl-C. With --from an AMQP queue is only read."""
    if ackmode is AckMode.REQUEUE and not 1 <= (count or 0) <= HELD_MAX:
        refuse(f"--ackmode requeue needs --count, {HELD_MAX} at most: the messages are given back at the end")
    begin = None if start is None else read_start(start)
    wanted = Wanted(names, shares=True, qos=qos, start=begin, count=count, ackmode=ackmode, group=group, tags=tags)
    _show(place, wanted, idle, Output.JSON if as_json else output)


def _show(place: Place, wanted: Wanted, idle_s: float | None, output: Output) -> None:
    from gateway.commands.doors.running import run

    shown = [0]
    run(_receive(place, wanted, idle_s, output, shown))
    if wanted.count is not None and shown[0] < wanted.count:
        refuse(f"only {shown[0]} of {wanted.count} messages came", code=EXIT_NOTHING)


async def _receive(place: Place, wanted: Wanted, idle_s: float | None, output: Output, shown: list[int]) -> None:
    """Show what comes up to the count, each before it is settled; those to give back are given back at the end."""
    import asyncio
    import sys
    from contextlib import aclosing

    from gateway.commands.doors.choice import make_link

    held: list[Incoming] = []
    async with make_link(place) as link, aclosing(link.listen(wanted)) as messages:
        try:
            while wanted.count is None or shown[0] < wanted.count:
                try:
                    message = await asyncio.wait_for(anext(messages), idle_s)
                except TimeoutError:
                    return
                sys.stdout.buffer.write(show(message, output))
                sys.stdout.buffer.flush()
                shown[0] += 1
                if wanted.ackmode is AckMode.REQUEUE:
                    held.append(message)
                elif wanted.shares:
                    await link.settle(message, wanted.ackmode)
        finally:
            for message in held:
                await link.settle(message, AckMode.REQUEUE)
