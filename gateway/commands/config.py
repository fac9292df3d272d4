"""Commands that look at the settings."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from gateway.commands.client import AdminClient
from gateway.commands.options import ADMIN, GIVEN, PLAIN, ConfigOption, JsonOption, PasswordOption, UserOption
from gateway.commands.output import print_json, print_listed
from gateway.commands.refusing import EXIT_MISSING, EXIT_NOTHING, plain_errors, refuse

config_cli = typer.Typer(**PLAIN, help="Check, print and convert settings.")


@config_cli.command("check")
def config_check(*, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Read the settings as `serve` does, and report what is wrong."""
    from gateway.audit.log import AuditLog
    from gateway.auth.backends.kinds import describe_clear, make_backends
    from gateway.auth.settings_users import make_users
    from gateway.auth.token_logins import read_keys
    from gateway.bridges.manager import check_bridges, describe_unreadable
    from gateway.listeners import check_certificates
    from gateway.settings.models import SettingsError
    from gateway.settings.reading import load_settings

    with plain_errors(SettingsError):
        settings = load_settings(config, {})
        make_users(settings.auth, os.environ)
        read_keys(settings.auth.jwt, os.environ)
        for backend in make_backends(settings.auth, os.environ):
            backend.close()
        certificates = check_certificates(settings)
        AuditLog.check(settings.audit)
        check_bridges(settings.bridges)
    now_s = time.time()
    ending = [f"the certificate in {one.path} {one.tell_end(now_s)}" for one in certificates if one.ends_soon(now_s)]
    warnings = [*describe_clear(settings.auth), *ending, *describe_unreadable(settings.bridges)]
    for line in warnings:
        print(f"lmq: warning: {line}", file=sys.stderr)
    print_listed({"fine": True, "warnings": warnings}, ["settings are fine"], as_json=as_json)


@config_cli.command("show")
def config_show(
    *,
    config: ConfigOption = None,
    secrets: Annotated[bool, typer.Option("--secrets", help="Print password hashes too.")] = False,
    admin: Annotated[
        str | None, typer.Option("--admin", help="HOST:PORT or URL of a running gateway: print the settings in force.")
    ] = None,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the settings that `serve` would use, or a gateway's in force, as a file for `--config`, or as JSON."""
    from gateway.settings.models import SettingsError
    from gateway.settings.reading import load_settings
    from gateway.settings.text import settings_table, settings_text

    if admin is not None or GIVEN.url is not None:
        found = AdminClient(admin or ADMIN, user, password).ask("/api/lmq/settings")
        if as_json and "settings" not in found:
            refuse("that gateway is older and tells its settings as text alone: leave out --json", code=EXIT_MISSING)
        if as_json:
            print_json(found["settings"])
        else:
            print(found["text"], end="")
        return
    with plain_errors(SettingsError):
        settings = load_settings(config, {})
    if as_json:
        print_json(settings_table(settings, with_secrets=secrets))
    else:
        print(settings_text(settings, with_secrets=secrets), end="")


@config_cli.command("from-mosquitto")
def config_from_mosquitto(
    file: Annotated[Path, typer.Argument(metavar="mosquitto.conf", help="Files that it names are read too.")],
    *,
    as_json: JsonOption = False,
) -> None:
    """Print the settings for a mosquitto.conf; exit code 3 if a line has no counterpart."""
    from gateway.commands.mosquitto.conf import Conversion
    from gateway.commands.mosquitto.lines import MosquittoFileError
    from gateway.commands.mosquitto.text import settings_file

    with plain_errors(MosquittoFileError):
        conversion = Conversion(file)
        settings = conversion.settings()
    remarks = [f"left out: {line}" for line in conversion.left_out] + conversion.hints
    if as_json:
        print_json({"settings": settings, "left_out": conversion.left_out, "hints": conversion.hints})
    else:
        print(settings_file(settings, [f"from {file.name}, by lmq config from-mosquitto", *remarks]), end="")
    for remark in remarks:
        print(f"lmq: {remark}", file=sys.stderr)
    if conversion.left_out:
        raise typer.Exit(EXIT_NOTHING)


@config_cli.command("doc")
def config_doc(*, as_json: JsonOption = False) -> None:
    """Print docs/settings.md, or the settings as a JSON Schema."""
    from gateway.settings.doc import settings_page
    from gateway.settings.models import GatewaySettings

    if as_json:
        print_json(GatewaySettings.model_json_schema())
    else:
        print(settings_page(), end="")
