"""Commands that look at the settings."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from gateway.commands.options import PLAIN, ConfigOption
from gateway.commands.refusing import EXIT_NOTHING, plain_errors

config_cli = typer.Typer(**PLAIN, help="Look at the settings.")


@config_cli.command("check")
def config_check(*, config: ConfigOption = None) -> None:
    """Read the settings as `serve` would, and say what is wrong with them."""
    from gateway.audit.log import AuditLog
    from gateway.auth.backends.kinds import describe_clear, make_backends
    from gateway.auth.settings_users import make_users
    from gateway.auth.token_logins import read_keys
    from gateway.bridges.manager import check_bridges
    from gateway.listeners import check_certificates
    from gateway.settings import SettingsError
    from gateway.settings_reading import load_settings

    with plain_errors(SettingsError):
        settings = load_settings(config, {})
        make_users(settings.auth, os.environ)
        read_keys(settings.auth.jwt, os.environ)
        for backend in make_backends(settings.auth, os.environ):
            backend.close()
        certificates = check_certificates(settings)
        AuditLog.check(settings.audit)
        check_bridges(settings.bridges)
    for line in describe_clear(settings.auth):
        print(f"lmq: warning: {line}", file=sys.stderr)
    for certificate in certificates:
        if certificate.expires_at_s <= time.time():
            print(f"lmq: warning: the certificate in {certificate.path} has expired", file=sys.stderr)
    print("settings are fine")


@config_cli.command("show")
def config_show(
    *,
    config: ConfigOption = None,
    secrets: Annotated[bool, typer.Option("--secrets", help="Print password hashes too.")] = False,
) -> None:
    """Print the settings that `serve` would use, as a file that `--config` takes."""
    from gateway.settings import SettingsError
    from gateway.settings_reading import load_settings
    from gateway.settings_text import settings_text

    with plain_errors(SettingsError):
        print(settings_text(load_settings(config, {}), with_secrets=secrets), end="")


@config_cli.command("from-mosquitto")
def config_from_mosquitto(
    file: Annotated[
        Path, typer.Argument(metavar="mosquitto.conf", help="Its password_file and acl_file are read, too.")
    ],
) -> None:
    """Print a mosquitto.conf as settings; exit code 3 where a line of it becomes none."""
    from gateway.commands.mosquitto.conf import Conversion
    from gateway.commands.mosquitto.lines import MosquittoFileError
    from gateway.commands.mosquitto.text import settings_file

    with plain_errors(MosquittoFileError):
        conversion = Conversion(file)
        settings = conversion.settings()
    remarks = [f"left out: {line}" for line in conversion.left_out] + conversion.hints
    print(settings_file(settings, [f"from {file.name}, by lmq config from-mosquitto", *remarks]), end="")
    for remark in remarks:
        print(f"lmq: {remark}", file=sys.stderr)
    if conversion.left_out:
        raise typer.Exit(EXIT_NOTHING)


@config_cli.command("doc")
def config_doc() -> None:
    """Print docs/settings.md."""
    from gateway.settings_doc import settings_page

    print(settings_page(), end="")
