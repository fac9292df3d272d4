"""The command that publishes messages at any door."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Annotated

import typer

from gateway.commands.doors.place import Door, Place, at_door
from gateway.commands.doors.traffic import Outgoing
from gateway.commands.options import JsonOption
from gateway.commands.output import print_done
from gateway.commands.refusing import EXIT_INTERRUPTED, EXIT_NOTHING, refuse

WINDOW = 100  # on their way at the same time; chosen: enough that acknowledgements are not waited for one by one


@at_door(Door.MQTT)
def publish(
    place: Place,
    target: Annotated[str, typer.Argument(help="A topic (MQTT, RocketMQ), or a queue or routing key (AMQP).")],
    body: Annotated[str | None, typer.Argument(help="The message; by default stdin.")] = None,
    *,
    file: Annotated[str | None, typer.Option("--file", "-f", help="Send the content of this file.")] = None,
    lines: Annotated[
        bool, typer.Option("--lines", "-l", help="Send each line of stdin, or of --file, as a message.")
    ] = False,
    size: Annotated[int | None, typer.Option("--size", min=0, help="Send a message of this many bytes.")] = None,
    qos: Annotated[int, typer.Option("--qos", "-q", min=0, max=2, help="QoS; 0: no acknowledgement.")] = 1,
    retain: Annotated[
        bool, typer.Option("--retain", "-r", help="MQTT: retain the message for later subscribers.")
    ] = False,
    headers: Annotated[
        list[str] | None, typer.Option("--header", "-H", help="NAME=VALUE, repeatable: a header or user property.")
    ] = None,
    exchange: Annotated[
        str, typer.Option("--exchange", "-e", help="AMQP exchange; without it TARGET is a queue.")
    ] = "",
    content_type: Annotated[str, typer.Option("--content-type", help="MQTT, AMQP: MIME type of the body.")] = "",
    expires: Annotated[
        float | None, typer.Option("--expires", min=0, help="MQTT, AMQP: seconds until the message expires.")
    ] = None,
    delay: Annotated[
        float | None, typer.Option("--delay", min=0, help="Seconds until the message is delivered.")
    ] = None,
    tags: Annotated[str, typer.Option("--tags", help="RocketMQ: tag, for filters.")] = "",
    keys: Annotated[str, typer.Option("--keys", help="RocketMQ: keys to find the message by.")] = "",
    count: Annotated[int, typer.Option("--count", "-c", min=1, help="Send it this many times.")] = 1,
    rate: Annotated[float | None, typer.Option("--rate", min=0.001, help="Messages a second.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Publish messages. The exit code is 3 if one reaches no queue, which AMQP and MQTT 5 report."""
    from gateway.commands.doors.running import run

    def make(content: bytes) -> Outgoing:
        more = (exchange, content_type, expires, delay, tags, keys)
        return Outgoing(target, content, qos, retain, pairs, *more)

    if not target and not (exchange and place.door is Door.AMQP):
        refuse("the target is empty: a topic such as plant/1/temp, or a routing key")
    pairs = read_headers(headers)
    if [body is not None, file is not None, size is not None].count(True) > 1:
        refuse("give only one of BODY, --file and --size")
    if lines and (body is not None or size is not None):
        refuse("--lines reads stdin or --file: leave out BODY and --size")
    content = None if body is None else body.encode(errors="surrogateescape")
    if size is not None:
        content = b"x" * size
    total = _Total()
    bodies = _bodies(content, file, lines=lines)
    run(_publish(place, make, bodies, _Pace(count, rate), total), interrupted=EXIT_INTERRUPTED)
    print_done({"sent": total.sent, "unreached": total.unreached}, as_json=as_json)
    if total.unreached:
        few = "the message reaches" if total.sent == 1 else f"{total.unreached} of {total.sent} messages reach"
        refuse(f"{few} no queue", code=EXIT_NOTHING)


class _Total:
    """How many were sent, and how many of them nobody gets."""

    def __init__(self) -> None:
        self.sent = self.unreached = 0


def read_headers(texts: list[str] | None) -> dict[str, str]:
    """Return what `--header` says."""
    pairs = [text.partition("=") for text in texts or []]
    for name, equals, _ in pairs:
        if not (name and equals):
            refuse(f"--header {name}{equals}: give NAME=VALUE")
    return {name: value for name, _, value in pairs}


async def _bodies(content: bytes | None, file: str | None, *, lines: bool) -> AsyncIterator[bytes]:
    """Give the body, or what is read, whole or line by line."""
    from gateway.commands.doors.feeding import read_chunks

    if content is not None:
        yield content
        return
    rest: list[bytes] = []
    async for chunk in read_chunks(file):
        if lines:
            *whole, last = b"".join((*rest, chunk)).split(b"\n")
            for line in whole:
                yield line.removesuffix(b"\r")
            rest = [last]
        else:
            rest.append(chunk)
    left = b"".join(rest)
    if left or not lines:
        yield left


async def _publish(
    place: Place, make: Callable[[bytes], Outgoing], bodies: AsyncIterator[bytes], pace: _Pace, total: _Total
) -> None:
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
                async for body in bodies:
                    for _ in range(pace.count):
                        await pace.wait()
                        await room.acquire()
                        group.create_task(send(make(body)))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None


class _Pace:
    """How often each body is sent, and how many messages a second."""

    def __init__(self, count: int, rate: float | None) -> None:
        self.count = count
        self._rate = rate
        self._number = 0
        self._begun_s = 0.0

    async def wait(self) -> None:
        """Wait until the next may be sent."""
        import asyncio

        if self._rate is None:
            return
        now_s = asyncio.get_running_loop().time()
        self._begun_s = self._begun_s or now_s
        await asyncio.sleep(max(self._begun_s + self._number / self._rate - now_s, 0))
        self._number += 1
