"""The command that publishes messages at any door."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Annotated

import typer

from gateway.commands.doors.place import Door, Place, at_door
from gateway.commands.doors.traffic import Outgoing
from gateway.commands.refusing import EXIT_INTERRUPTED, EXIT_NOTHING, refuse

WINDOW = 100  # on their way at the same time
STDIN = "-"


@at_door(Door.MQTT)
def publish(
    place: Place,
    target: Annotated[str, typer.Argument(help="MQTT's or RocketMQ's topic, AMQP's routing key.")],
    body: Annotated[str | None, typer.Argument(help="The message; without it stdin is read.")] = None,
    *,
    file: Annotated[str | None, typer.Option("--file", "-f", help="The message is a file's content.")] = None,
    lines: Annotated[
        bool, typer.Option("--lines", "-l", help="Each line of stdin, or the file, is a message.")
    ] = False,
    size: Annotated[
        int | None, typer.Option("--size", min=0, help="The message is so many bytes of no meaning.")
    ] = None,
    qos: Annotated[int, typer.Option("--qos", "-q", min=0, max=2, help="0: nobody says that it arrived.")] = 1,
    retain: Annotated[bool, typer.Option("--retain", "-r", help="MQTT: kept for who subscribes later.")] = False,
    headers: Annotated[
        list[str] | None, typer.Option("--header", "-H", help="NAME=VALUE, again for more: user property, header.")
    ] = None,
    exchange: Annotated[str, typer.Option("--exchange", "-e", help="AMQP; without it TARGET is a queue.")] = "",
    content_type: Annotated[str, typer.Option("--content-type", help="MQTT, AMQP: the body's MIME type.")] = "",
    expires: Annotated[
        float | None, typer.Option("--expires", min=0, help="MQTT, AMQP: after so many seconds.")
    ] = None,
    delay: Annotated[float | None, typer.Option("--delay", min=0, help="It comes so many seconds later.")] = None,
    tags: Annotated[str, typer.Option("--tags", help="RocketMQ: what tag filters look at.")] = "",
    keys: Annotated[str, typer.Option("--keys", help="RocketMQ: words that it is found by.")] = "",
    count: Annotated[int, typer.Option("--count", "-c", min=1, help="So many times.")] = 1,
    rate: Annotated[float | None, typer.Option("--rate", min=0.001, help="So many a second.")] = None,
) -> None:
    """Publish messages; exit code 3 where one reaches nobody, as far as the door tells it."""
    from gateway.commands.doors.running import run

    def make(content: bytes) -> Outgoing:
        more = (exchange, content_type, expires, delay, tags, keys)
        return Outgoing(target, content, qos, retain, pairs, *more)

    if not target and not (exchange and place.door is Door.AMQP):
        refuse("the target is empty: a topic such as plant/1/temp, or a routing key")
    pairs = read_headers(headers)
    bodies = _bodies(body, file, lines=lines, size=size)
    total = _Total()
    run(
        _publish(place, (make(one) for one in bodies for _ in range(count)), rate, total),
        interrupted=EXIT_INTERRUPTED,
    )
    if total.unreached:
        few = "the message reaches" if total.sent == 1 else f"{total.unreached} of {total.sent} messages reach"
        refuse(f"{few} nobody", code=EXIT_NOTHING)


class _Total:
    """How many were sent, and how many of them nobody gets."""

    def __init__(self) -> None:
        self.sent = self.unreached = 0


def read_headers(texts: list[str] | None) -> dict[str, str]:
    """Return what `--header` says."""
    pairs = [text.partition("=") for text in texts or []]
    for name, equals, _ in pairs:
        if not (name and equals):
            refuse(f"--header {name}{equals}: it has to be NAME=VALUE")
    return {name: value for name, _, value in pairs}


def _bodies(body: str | None, file: str | None, *, lines: bool, size: int | None) -> Iterator[bytes]:
    if [body is not None, file is not None, size is not None].count(True) > 1:
        refuse("a message is BODY, --file or --size, one of them")
    if body is not None:
        content = body.encode(errors="surrogateescape")
        return iter(content.splitlines() if lines else [content])
    if size is not None:
        return iter([b"x" * size])
    return _read(file, lines=lines)


def _read(file: str | None, *, lines: bool) -> Iterator[bytes]:
    try:
        with sys.stdin.buffer if file in {None, STDIN} else Path(str(file)).open("rb") as source:
            if lines:
                yield from (line.rstrip(b"\r\n") for line in source)
            else:
                yield source.read()
    except OSError as error:
        refuse(f"cannot read {file}: {error.strerror}", error)


async def _publish(place: Place, messages: Iterator[Outgoing], rate: float | None, total: _Total) -> None:
    import asyncio

    from gateway.commands.doors.choice import make_link

    async def send(message: Outgoing) -> None:
        try:
            reached = await link.publish(message)
            total.unreached += reached is False
            total.sent += 1
        finally:
            room.release()

    room = asyncio.Semaphore(WINDOW)
    async with make_link(place) as link:
        try:
            async with asyncio.TaskGroup() as group:
                async for message in _paced(messages, rate):
                    await room.acquire()
                    group.create_task(send(message))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None


async def _paced(messages: Iterator[Outgoing], rate: float | None) -> AsyncIterator[Outgoing]:
    """Give messages as they are read, on a thread: a terminal or pipe may be slow; no faster than a rate."""
    import asyncio

    loop = asyncio.get_running_loop()
    begun_s = loop.time()
    number = 0
    while (message := await asyncio.to_thread(next, messages, None)) is not None:
        if rate is not None:
            await asyncio.sleep(max(begun_s + number / rate - loop.time(), 0))
        yield message
        number += 1
