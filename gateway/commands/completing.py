"""Names that the shell completes, from the gateway that the command line leads to: quickly, or none."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import typer

from gateway.commands.client import AdminClient
from gateway.commands.options import ADMIN, GIVEN

COUNT_MAX = 100  # chosen: more than a screen shows
TIMEOUT_S = 1.0  # a shell waits for it in the middle of a line


def names_of(path: str, key: str = "name", **asked: object) -> Callable[[typer.Context, str], list[str]]:
    """Return what completes the names that an answer of the API has under `key`."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        given: dict[str, Any] = ctx.params or {}
        admin = given.get("admin") or os.environ.get("LMQ_CLI_ADMIN", ADMIN)
        user = given.get("user") or os.environ.get("LMQ_CLI_USER")
        password = given.get("password") or os.environ.get("LMQ_CLI_PASSWORD")
        GIVEN.url, GIVEN.token = _first_of(ctx)
        question = {"page": 1, "page_size": COUNT_MAX, "name": incomplete or None, **asked} if asked else asked
        try:
            client = AdminClient(admin, user, password, timeout_s=TIMEOUT_S, is_quiet=True)
            found = client.get(path, question, as_member=not asked)
        except typer.Exit:
            return []
        items = found.get("items") or found.get("rules") or [] if isinstance(found, dict) else found
        # a group is listed once for each of its queues, a name may be in several virtual hosts
        return [name for name in dict.fromkeys(str(item[key]) for item in items) if name.startswith(incomplete)]

    return complete


def _first_of(ctx: typer.Context) -> tuple[str | None, str | None]:
    """Return the URL and the token that stand before the command's name."""
    told: dict[str, Any] = ctx.find_root().params or {}
    return told.get("url"), told.get("token")


complete_queues = names_of("/api/lmq/queues", door="amqp")
complete_connections = names_of("/api/connections", sort=None)
complete_channels = names_of("/api/channels", sort=None)
complete_sessions = names_of("/api/lmq/sessions", "client", sort=None)
complete_groups = names_of("/api/lmq/groups", "group", sort=None)
complete_exchanges = names_of("/api/exchanges", sort=None)
complete_retained = names_of("/api/lmq/retained", "topic", sort=None)
complete_delayed = names_of("/api/lmq/delayed", "id")
complete_vhosts = names_of("/api/vhosts")
complete_users = names_of("/api/users")
complete_policies = names_of("/api/policies")
complete_rules = names_of("/api/lmq/rules")
complete_tokens = names_of("/api/lmq/tokens")
