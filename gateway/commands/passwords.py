"""The command that makes password hashes."""

from __future__ import annotations

from typing import Annotated

import typer

from gateway.commands.asking import ask_password
from gateway.commands.options import JsonOption
from gateway.commands.output import print_listed


def hash_password_of(
    *,
    password: Annotated[
        str | None, typer.Option(help="The password, in place of a prompt; other users of this machine can see it.")
    ] = None,
    scram: Annotated[
        bool, typer.Option("--scram", help="Print keys for SCRAM-SHA-256; they also check plain logins.")
    ] = False,
    rounds: Annotated[
        int,
        typer.Option(
            min=4_096, max=10_000_000, help="With --scram: rounds of the hash, which each login costs its client."
        ),
    ] = 32_768,
    as_json: JsonOption = False,
) -> None:
    """Print the hash of a password, for the settings.

    The command asks for the password, or reads a line from a pipe. Use the hash as `auth.users.NAME.password_hash`.
    """
    from gateway.auth.users import hash_for_scram, hash_password

    plain = ask_password() if password is None else password
    made = hash_for_scram(plain, rounds) if scram else hash_password(plain)
    print_listed({"password_hash": made}, [made], as_json=as_json)
