"""Asks for passwords, which do not belong on the command line, and for a yes before what cannot be undone."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from gateway.commands.refusing import refuse

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]


def confirm(what: str, *, yes: bool) -> None:
    """Go on where it is meant: said by `--yes`, or answered at the terminal."""
    if yes:
        return
    if not sys.stdin.isatty():
        refuse(f"{what}; add --yes to do it")
    print(f"{what}. Go on? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        refuse("nothing was done")


def ask_password() -> str:
    """Return a password from the terminal, asked twice, or from the pipe that stands in its place.

    All that is said goes to stderr: stdout is the hash alone.
    """
    if not sys.stdin.isatty():
        return read_password()
    from getpass import getpass

    password = getpass("Password: ", sys.stderr)
    if password != getpass("Again: ", sys.stderr):
        refuse("the two passwords differ")
    return _check(password)


def read_password() -> str:
    """Return the password that is the first line of stdin."""
    return _check(sys.stdin.readline().rstrip("\r\n"))


def _check(password: str) -> str:
    if not password:
        refuse("the password is empty")
    return password
