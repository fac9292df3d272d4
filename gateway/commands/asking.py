"""Asks for what is not to stand on the command line."""

from __future__ import annotations

import sys

from gateway.commands.refusing import refuse


def ask_password() -> str:
    """Return a password from the terminal, asked twice, or from the pipe that stands in its place.

    All that is said goes to stderr: stdout is the hash alone.
    """
    if not sys.stdin.isatty():
        password = sys.stdin.readline().rstrip("\r\n")
    else:
        from getpass import getpass

        password = getpass("Password: ", sys.stderr)
        if password != getpass("Again: ", sys.stderr):
            refuse("the two passwords differ")
    if not password:
        refuse("the password is empty")
    return password
