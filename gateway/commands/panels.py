"""How `lmq --help` is laid out: commands in groups by what they are for."""

from __future__ import annotations

from typing import Any

from gateway.commands.unused import CheckedGroup

WIDTH = 100  # of help, where the terminal has it
OTHERS = "Others"
PANELS = {
    "Run": ("serve", "config", "hash-password", "version", "report"),
    "Messages": ("publish", "subscribe", "consume", "bench", "trace", "message", "device", "explain"),
    "See": (
        "status", "top", "queues", "connections", "channels", "consumers", "sessions", "subscriptions", "groups",
        "exchanges", "bindings", "retained", "delayed", "deadletters", "transactions", "bridges", "segments", "held",
        "log",
    ),
    "Change": ("queue", "connection", "session", "group", "policy", "vhost", "definitions", "retention"),
    "Users and rights": ("user", "grant", "revoke", "rule", "token"),
}  # fmt: skip


class PanelGroup(CheckedGroup):
    """The group of all commands, told under headings; one that is in none of them stands at the end."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - of typer's own click
        """Write the commands under their headings."""
        told = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        placed = {name for names in PANELS.values() for name in names}
        others = tuple(name for name in told if name not in placed)
        width = max((len(name) for name in told), default=0)
        for panel, names in (*PANELS.items(), (OTHERS, others)):
            rows = [
                (f"{name:<{width}}", command.get_short_help_str(WIDTH - width - 6))
                for name in names
                if (command := told.get(name)) is not None and not command.hidden
            ]
            if rows:
                with formatter.section(panel):
                    formatter.write_dl(rows)
