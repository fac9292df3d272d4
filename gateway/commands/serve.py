"""The command that runs the gateway."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from gateway.commands.options import ConfigOption, DataDirOption
from gateway.commands.refusing import plain_errors, refuse


def serve(
    *,
    config: ConfigOption = None,
    data_dir: DataDirOption = None,
    mqtt: Annotated[str | None, typer.Option(help="HOST:PORT of MQTT; port 0 picks one; off closes the door.")] = None,
    amqp: Annotated[str | None, typer.Option(help="HOST:PORT of AMQP 0-9-1, or off.")] = None,
    namesrv: Annotated[str | None, typer.Option(help="HOST:PORT of the RocketMQ name server, or off.")] = None,
    broker: Annotated[str | None, typer.Option(help="HOST:PORT of the RocketMQ broker, or off.")] = None,
    admin: Annotated[str | None, typer.Option(help="HOST:PORT of the admin API, or off.")] = None,
    flush: Annotated[str | None, typer.Option(help="sync: acknowledge when on disk; async: at once.")] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error.")] = None,
    log_format: Annotated[str | None, typer.Option(help="text or json.")] = None,
) -> None:
    """Run the gateway until SIGTERM or SIGINT; on SIGHUP it reads its settings again."""
    if sys.platform != "linux":
        refuse(f"the gateway runs on Linux; this is {sys.platform}")
    from gateway.serving import USE_ERRORS, run_gateway

    flags = _tree(
        {
            "data_dir": data_dir,
            "mqtt.listen": mqtt,
            "amqp.listen": amqp,
            "rocketmq.namesrv": namesrv,
            "rocketmq.broker": broker,
            "admin.listen": admin,
            "store.flush.mode": flush,
            "log.level": log_level,
            "log.format": log_format,
        }
    )
    with plain_errors(*USE_ERRORS):
        code = run_gateway(config, flags)
    raise typer.Exit(code)


def _tree(flags: dict[str, object]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path, value in flags.items():
        if value is not None:
            node = tree
            *blocks, name = path.split(".")
            for block in blocks:
                node = node.setdefault(block, {})
            node[name] = value
    return tree
