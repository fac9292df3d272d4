"""The command `lmq`. Each command is thin, and turns errors into one line and an exit code."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
import uvloop

from core.errors import LmqError
from gateway.app import Gateway
from gateway.auth.authenticator import make_users
from gateway.auth.users import hash_password
from gateway.collector import Collector
from gateway.logs import set_up_logs
from gateway.net.listener import ListenError
from gateway.settings import GatewaySettings, SettingsError, load_settings
from gateway.settings_doc import settings_page
from gateway.version import VERSION

EXIT_FAILED = 1
EXIT_WRONG_USE = 2
ADD_SPARK = "pip install 'lmq-gateway[spark]'"

cli = typer.Typer(name="lmq", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
config_cli = typer.Typer(no_args_is_help=True, help="Look at the settings.")
explain_cli = typer.Typer(no_args_is_help=True, help="Say where things go, and why.")
report_cli = typer.Typer(no_args_is_help=True, help="Spark reports over the log.")
cli.add_typer(config_cli, name="config")
cli.add_typer(explain_cli, name="explain")
cli.add_typer(report_cli, name="report")

ConfigOption = Annotated[Path | None, typer.Option("--config", envvar="LMQ_CONFIG", help="TOML file of settings.")]
DataDirOption = Annotated[str | None, typer.Option("--data-dir", help="Folder that holds everything.")]


def main() -> None:
    """Run the command line."""
    cli()


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Turn what an operator can put right into one line on stderr and exit code 2."""
    try:
        yield
    except (SettingsError, ListenError, LmqError) as error:
        print(f"lmq: {error}", file=sys.stderr)
        raise typer.Exit(EXIT_WRONG_USE) from error


def _version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it so
    if wanted:
        print(f"lmq-gateway {VERSION}")
        raise typer.Exit


@cli.callback()
def root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which.")] = False,  # noqa: FBT002
) -> None:
    """LMQ Gateway: MQTT, AMQP 0-9-1 and RocketMQ onto one log."""
    del version


@cli.command()
def serve(
    *,
    config: ConfigOption = None,
    data_dir: DataDirOption = None,
    mqtt: Annotated[str | None, typer.Option(help="HOST:PORT of MQTT; port 0 picks one; off closes the door.")] = None,
    amqp: Annotated[str | None, typer.Option(help="HOST:PORT of AMQP 0-9-1, or off.")] = None,
    namesrv: Annotated[str | None, typer.Option(help="HOST:PORT of the RocketMQ name server, or off.")] = None,
    broker: Annotated[str | None, typer.Option(help="HOST:PORT of the RocketMQ broker, or off.")] = None,
    admin: Annotated[str | None, typer.Option(help="HOST:PORT of the admin API, or off.")] = None,
    flush: Annotated[str | None, typer.Option(help="sync or async: when an acknowledgement is sent.")] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error.")] = None,
    log_format: Annotated[str | None, typer.Option(help="text or json.")] = None,
) -> None:
    """Run the gateway until SIGTERM or SIGINT."""
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
    with _plain_errors():
        settings = load_settings(config, flags)
        set_up_logs(settings.log.level, settings.log.format)
        code = uvloop.run(_serve(settings))
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


async def _serve(settings: GatewaySettings) -> int:
    wanted = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, wanted.set)
    gateway = Gateway(settings)
    collector = Collector()
    try:
        await gateway.start()
        collector.start()
        print("\n".join([*gateway.lines(), "ready"]), flush=True)
        waits = [asyncio.create_task(event.wait()) for event in (wanted, gateway.stopped)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
    finally:
        await gateway.stop()
        collector.stop()
    return EXIT_FAILED if gateway.stopped.is_set() else 0


@config_cli.command("check")
def config_check(*, config: ConfigOption = None) -> None:
    """Read the settings as `serve` would, and say what is wrong with them."""
    with _plain_errors():
        make_users(load_settings(config, {}).auth, os.environ)
    print("settings are fine")


@config_cli.command("show")
def config_show(*, config: ConfigOption = None) -> None:
    """Print the settings that `serve` would use, as JSON."""
    with _plain_errors():
        settings = load_settings(config, {})
    print(settings.model_dump_json(indent=2))


@config_cli.command("doc")
def config_doc() -> None:
    """Print docs/settings.md."""
    print(settings_page(), end="")


@cli.command("hash-password")
def hash_password_command(
    *, password: Annotated[str, typer.Option(prompt=True, hide_input=True, confirmation_prompt=True)]
) -> None:
    """Ask for a password and print what `auth.users.NAME.password_hash` takes."""
    print(hash_password(password))


@explain_cli.command("topic")
def explain_topic(
    topic: Annotated[str, typer.Argument(help="A topic in MQTT's form, such as a/b/c.")],
    *,
    admin: Annotated[str, typer.Option(help="HOST:PORT of the gateway's admin API, or its URL.")] = "127.0.0.1:15672",
    as_json: Annotated[bool, typer.Option("--json", help="Print the API's answer.")] = False,
) -> None:
    """Show the light queues that a publish to TOPIC would reach now, with filters, bindings and readers."""
    base = admin if "://" in admin else f"http://{admin}"
    url = f"{base.rstrip('/')}/api/explain?{urllib.parse.urlencode({'topic': topic})}"
    if not url.startswith(("http://", "https://")):
        print(f"lmq: {admin} is not an http address", file=sys.stderr)
        raise typer.Exit(EXIT_WRONG_USE)
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - http and https only, checked above
            found = json.load(answer)
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        print(f"lmq: cannot ask the gateway at {admin}: {reason}", file=sys.stderr)
        raise typer.Exit(EXIT_WRONG_USE) from error
    print(json.dumps(found, indent=2) if as_json else "\n".join(_explained(found)))


def _explained(found: dict[str, Any]) -> list[str]:
    queues = found["queues"]
    reached = f"{len(queues)} light queue{'' if len(queues) == 1 else 's'}"
    lines = [f"{found['topic']} is stored once on {found['parent_topic']} and reaches {reached}"]
    for queue in queues:
        lines.append(f"  {queue['name']}")
        lines.append(f"    filters: {', '.join(queue['filters'])}")
        if queue["bindings"]:
            lines.append(f"    bindings: {', '.join(queue['bindings'])}")
        lines.append(
            f"    subscriptions: {queue['subscriptions']}  readers: {queue['readers']}  next: {queue['max_offset']}"
        )
    return lines


@report_cli.command("fan-out")
def report_fan_out(
    *,
    data_dir: Annotated[str, typer.Option("--data-dir", help="The gateway's data folder; it may be running.")],
    out: Annotated[str, typer.Option("--out", help="Folder for the Parquet files and index.html.")],
    skip_bad_records: Annotated[bool, typer.Option("--skip-bad-records", help="Leave damaged records out.")] = False,
) -> None:
    """Count for each device what was stored once and what a copy in each queue would have cost."""
    if find_spec("pyspark") is None:
        print(f"lmq: reports need Spark; add it with: {ADD_SPARK}", file=sys.stderr)
        raise typer.Exit(EXIT_WRONG_USE)
    # A process of its own: the JVM's, and the analytics stand beside the gateway, not under it.
    arguments = ["fan-out", "--data-dir", data_dir, "--out", out]
    arguments += ["--skip-bad-records"] if skip_bad_records else []
    os.execv(sys.executable, [sys.executable, "-m", "spark_analytics", *arguments])  # noqa: S606 - no shell is meant
