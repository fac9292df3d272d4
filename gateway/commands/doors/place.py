"""Which door commands talk to, how, and as which user: the options that all of them share."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from gateway.commands.completing import complete_vhosts
from gateway.commands.refusing import refuse

HOST = "127.0.0.1"
PORT_MAX = 65_535  # TCP has two bytes for it


class Door(StrEnum):
    """A door that messages go through."""

    MQTT = "mqtt"
    AMQP = "amqp"
    ROCKETMQ = "rocketmq"


PORTS = {Door.MQTT: (1883, 8883), Door.AMQP: (5672, 5671), Door.ROCKETMQ: (9876, 9876)}  # without and with TLS


class Tls(NamedTuple):
    """How a connection is secured."""

    ca: Path | None
    cert: Path | None
    key: Path | None
    insecure: bool


class Place(NamedTuple):
    """A door of a gateway, or of another broker of its protocol."""

    door: Door
    host: str
    port: int
    user: str | None
    password: str | None
    vhost: str
    client: str | None
    tls: Tls | None

    @property
    def address(self) -> str:
        """What people call it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def at_door(door: Door) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Have a command take the options of a place, `door` if none is named, and the place as its first argument."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        shared = inspect.signature(_make_place, eval_str=True).parameters
        own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
        options = [
            one.replace(default=door) if name == "door" else one.replace(default=one.default)
            for name, one in shared.items()
        ]

        def call(**given: Any) -> None:  # noqa: ANN401 - as typer calls it
            place = _make_place(**{name: given.pop(name) for name in shared})
            command(place, **given)

        call.__doc__ = command.__doc__
        call.__name__ = command.__name__
        call.__signature__ = inspect.Signature([*own, *options])  # type: ignore[attr-defined] # it may be set
        call.__annotations__ = {one.name: one.annotation for one in (*own, *options)}
        return call

    return decorate


def _make_place(
    *,
    door: Annotated[Door, typer.Option("--door", "-d", help="The protocol.")] = Door.MQTT,
    server: Annotated[
        str | None,
        typer.Option("--server", "-s", envvar="LMQ_CLI_SERVER", help="HOST or HOST:PORT; default: this machine."),
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", envvar="LMQ_CLI_USER", help="User name; RocketMQ: access key.")
    ] = None,
    password: Annotated[
        str | None,
        typer.Option("--password", envvar="LMQ_CLI_PASSWORD", help="Password; RocketMQ: secret key."),
    ] = None,
    vhost: Annotated[
        str, typer.Option("--vhost", help="AMQP: the virtual host.", autocompletion=complete_vhosts)
    ] = "/",
    client: Annotated[str | None, typer.Option("--client", help="MQTT: the client identifier.")] = None,
    tls: Annotated[bool, typer.Option("--tls", help="Use TLS; --ca, --cert and --insecure imply it.")] = False,
    ca: Annotated[Path | None, typer.Option("--ca", help="PEM file of the authorities to trust.")] = None,
    cert: Annotated[Path | None, typer.Option("--cert", help="PEM file of the client certificate.")] = None,
    key: Annotated[Path | None, typer.Option("--key", help="PEM file of its key, if not in --cert.")] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Use TLS without checking the server's certificate.")
    ] = False,
) -> Place:
    wanted = Tls(ca, cert, key, insecure) if tls or ca or cert or insecure else None
    host, port = _parse_server(server or HOST, PORTS[door][wanted is not None])
    return Place(door, host, port, user, password, vhost, client, wanted)


def _parse_server(text: str, default: int) -> tuple[str, int]:
    host, separator, port = text.rpartition(":")
    if not separator or (":" in host and not host.endswith("]")):
        return text.removeprefix("[").removesuffix("]"), default
    if not port.isascii() or not port.isdigit() or int(port) > PORT_MAX:
        refuse(f"--server {text}: give HOST or HOST:PORT")
    return host.removeprefix("[").removesuffix("]"), int(port)
