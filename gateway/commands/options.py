"""Options that commands share, so that they are called the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.commands.unused import CheckedGroup


class ListFirst(CheckedGroup):
    """A group of commands that lists where it can and is told no command: `lmq queues` is `lmq queues list`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - typer's own kind of context is not public
        """Take the command's own options for those of the list."""
        is_told = args and not (args[0].startswith("-") and args[0] not in ctx.help_option_names)
        is_completed = ctx.resilient_parsing and not args  # what comes next may be any command of the group
        if "list" in self.commands and not is_told and not is_completed:
            args = ["list", *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:  # noqa: ANN401 - as above
        """Return the group's commands, or the list's options, that begin so."""
        listing = self.commands.get("list")
        if listing is None or not incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        told = listing.make_context("list", [], parent=ctx, resilient_parsing=True)
        return listing.shell_complete(told, incomplete)


PLAIN: dict[str, Any] = {
    "no_args_is_help": True,
    "rich_markup_mode": None,  # rich takes longer to load than all else
    "cls": ListFirst,
}
ADMIN = "127.0.0.1:15672"

ConfigOption = Annotated[Path | None, typer.Option("--config", envvar="LMQ_CONFIG", help="TOML file with settings.")]
DataDirOption = Annotated[str | None, typer.Option("--data-dir", help="Folder for all data.")]
AdminOption = Annotated[
    str, typer.Option("--admin", envvar="LMQ_CLI_ADMIN", help="HOST:PORT or URL of the gateway's admin API.")
]
UserOption = Annotated[
    str | None,
    typer.Option("--user", envvar="LMQ_CLI_USER", help="User to log in as; without it, changes log in as guest."),
]
PasswordOption = Annotated[
    str | None,
    typer.Option(
        "--password", envvar="LMQ_CLI_PASSWORD", help="Password of --user; other users of this machine can see it."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the answer as JSON, and nothing else.")]


class Given:
    """What stands before the command's name, for each command: set once in a process."""

    url: str | None = None
    token: str | None = None
    says_token = False  # on the command line, so that it goes before a user that the environment names


GIVEN = Given()
