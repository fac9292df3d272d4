"""The command `lmq`. Each command is thin, and turns errors into one line and an exit code.

What a command needs is imported where it is used: `lmq --help` answers in the time that typer takes to load.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from gateway.version import VERSION

EXIT_WRONG_USE = 2
ADD_SPARK = "pip install 'lmq-gateway[spark]'"

PLAIN: dict[str, Any] = {"no_args_is_help": True, "rich_markup_mode": None}  # rich takes longer to load than all else
cli = typer.Typer(name="lmq", add_completion=False, pretty_exceptions_enable=False, **PLAIN)
config_cli = typer.Typer(**PLAIN, help="Look at the settings.")
explain_cli = typer.Typer(**PLAIN, help="Say where things go, and why.")
report_cli = typer.Typer(**PLAIN, help="Spark reports over the log.")
cli.add_typer(config_cli, name="config")
cli.add_typer(explain_cli, name="explain")
cli.add_typer(report_cli, name="report")

ConfigOption = Annotated[Path | None, typer.Option("--config", envvar="LMQ_CONFIG", help="TOML file of settings.")]
DataDirOption = Annotated[str | None, typer.Option("--data-dir", help="Folder that holds everything.")]
AdminOption = Annotated[str, typer.Option("--admin", help="HOST:PORT of the gateway's admin API, or its URL.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the API's answer.")]
ADMIN = "127.0.0.1:15672"


def main() -> None:
    """Run the command line."""
    cli()


@contextmanager
def _plain_errors(*kinds: type[Exception]) -> Iterator[None]:
    """Turn what an operator can put right, errors of these kinds, into one line on stderr and exit code 2."""
    try:
        yield
    except kinds as error:
        _refuse(str(error), error)


def _refuse(text: str, error: Exception | None = None) -> NoReturn:
    print(f"lmq: {text}", file=sys.stderr)
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
    """Run the gateway until SIGTERM or SIGINT; SIGHUP has it read its settings again."""
    if sys.platform != "linux":
        _refuse(f"the gateway runs on Linux; this is {sys.platform}")
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
    with _plain_errors(*USE_ERRORS):
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


@config_cli.command("check")
def config_check(*, config: ConfigOption = None) -> None:
    """Read the settings as `serve` would, and say what is wrong with them."""
    from gateway.auth.authenticator import make_users
    from gateway.listeners import check_certificates
    from gateway.settings import SettingsError, load_settings

    with _plain_errors(SettingsError):
        settings = load_settings(config, {})
        make_users(settings.auth, os.environ)
        check_certificates(settings)
    print("settings are fine")


@config_cli.command("show")
def config_show(
    *,
    config: ConfigOption = None,
    secrets: Annotated[bool, typer.Option("--secrets", help="Print password hashes too.")] = False,
) -> None:
    """Print the settings that `serve` would use, as a file that `--config` takes."""
    from gateway.settings import SettingsError, load_settings
    from gateway.settings_text import settings_text

    with _plain_errors(SettingsError):
        print(settings_text(load_settings(config, {}), with_secrets=secrets), end="")


@config_cli.command("doc")
def config_doc() -> None:
    """Print docs/settings.md."""
    from gateway.settings_doc import settings_page

    print(settings_page(), end="")


@cli.command("hash-password")
def hash_password_command(
    *,
    password: Annotated[str | None, typer.Option(help="Ask for none; other users of the machine can see it.")] = None,
    scram: Annotated[
        bool, typer.Option("--scram", help="Print keys for SCRAM-SHA-256; plain logins go by them too.")
    ] = False,
    rounds: Annotated[
        int, typer.Option(min=4_096, max=10_000_000, help="With --scram: what each login costs its client.")
    ] = 32_768,
) -> None:
    """Print the hash of a password, for the settings.

    It is asked for, or read as a line where stdin is a pipe, and goes into `auth.users.NAME.password_hash`.
    """
    from gateway.auth.users import hash_for_scram, hash_password

    plain = _ask_password() if password is None else password
    print(hash_for_scram(plain, rounds) if scram else hash_password(plain))


def _ask_password() -> str:
    """Return a password from the terminal, asked twice, or from the pipe that stands in its place.

    All that is said goes to stderr: stdout is the hash alone.
    """
    if not sys.stdin.isatty():
        password = sys.stdin.readline().rstrip("\r\n")
    else:
        from getpass import getpass

        password = getpass("Password: ", sys.stderr)
        if password != getpass("Again: ", sys.stderr):
            _refuse("the two passwords differ")
    if not password:
        _refuse("the password is empty")
    return password


@explain_cli.command("topic")
def explain_topic(
    topic: Annotated[str, typer.Argument(help="A topic in MQTT's form, such as a/b/c.")],
    *,
    admin: AdminOption = ADMIN,
    as_json: JsonOption = False,
) -> None:
    """Show the light queues that a publish to TOPIC would reach now, with filters, bindings and readers."""
    _explain(admin, {"topic": topic}, as_json=as_json)


@explain_cli.command("exchange")
def explain_exchange(
    exchange: Annotated[str, typer.Argument(help="An AMQP exchange; '' is the default one, whose keys are queues.")],
    routing_key: Annotated[str, typer.Argument(help="The routing key, such as a.b.c.")] = "",
    *,
    admin: AdminOption = ADMIN,
    as_json: JsonOption = False,
) -> None:
    """Show the light queues that a publish to EXCHANGE with ROUTING_KEY would reach now."""
    _explain(admin, {"exchange": exchange, "routing_key": routing_key}, as_json=as_json)


def _explain(admin: str, question: dict[str, str], *, as_json: bool) -> None:
    import json

    found = _ask_gateway(admin, question)
    print(json.dumps(found, indent=2) if as_json else "\n".join(_explained(found)))


def _ask_gateway(admin: str, question: dict[str, str]) -> dict[str, Any]:
    """Return what the gateway's admin API answers, or end with its reason, or with why it cannot be asked."""
    import json
    import urllib.error
    import urllib.parse
    import urllib.request
    from http.client import HTTPException

    base = admin if "://" in admin else f"http://{admin}"
    url = f"{base.rstrip('/')}/api/explain?{urllib.parse.urlencode(question)}"
    if not url.startswith(("http://", "https://")):
        _refuse(f"{admin} is not an http address")
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - http and https only, checked above
            found: dict[str, Any] = json.load(answer)
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        said = f"cannot ask the gateway at {admin}: {reason}"
        if isinstance(error, urllib.error.HTTPError):
            said = _refusal(error.read()) or said
        _refuse(said, error)
    return found


def _refusal(body: bytes) -> str:
    """Return the reason in an API's answer that refuses the question, empty where it gives none in words."""
    import json

    try:
        detail = json.loads(body)["detail"]
    except (ValueError, LookupError, TypeError):
        return ""
    return detail if isinstance(detail, str) else ""


def _explained(found: dict[str, Any]) -> list[str]:
    queues = found["queues"]
    reached = f"{len(queues)} light queue{'' if len(queues) == 1 else 's'}"
    what = found["topic"]
    if "exchange" in found:
        what = f"routing key {found['routing_key']!r} on {found['kind']} exchange {found['exchange']!r}"
        if not queues and not (found["exchange"] == "amq.topic" and found["topic"]):
            return [f"{what} leads to no queue: a message is confirmed and dropped, one that is mandatory comes back"]
    lines = [f"{what} is stored once on {found['parent_topic']} and reaches {reached}"]
    for queue in queues:
        lines.append(f"  {queue['name']}")
        if queue["filters"]:
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
        _refuse(f"reports need Spark; add it with: {ADD_SPARK}")
    # A process of its own: the JVM's, and the analytics stand beside the gateway, not under it.
    arguments = ["fan-out", "--data-dir", data_dir, "--out", out]
    arguments += ["--skip-bad-records"] if skip_bad_records else []
    os.execv(sys.executable, [sys.executable, "-m", "spark_analytics", *arguments])  # noqa: S606 - no shell is meant
