"""Commands that show the whole gateway: once, or live."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import time
from typing import Any, NamedTuple

import typer

from gateway.commands.client import AdminClient
from gateway.commands.lists import KINDS, WatchOption
from gateway.commands.options import ADMIN, AdminOption, JsonOption, PasswordOption, UserOption
from gateway.commands.output import Column, fit_table, print_facts, print_table, show_answer

DEEPEST = 15  # queues that `lmq top` shows
DEEPEST_QUEUES = {"door": "amqp", "sort": "messages_ready", "sort_reverse": True, "page": 1, "page_size": DEEPEST}
SPARE = ("light queue", "next", "door", "kept", "readers", "vhost", "unacked", "out/s", "in/s")  # on narrow terminals
SPARE_OF_DOORS = ("again", "sessions", "messages out", "messages in", "connections")
DOORS = (
    Column("door", "door"),
    Column("connections", "connections"),
    Column("sessions", "sessions"),
    Column("messages in", "messages_in"),
    Column("messages out", "messages_out"),
    Column("again", "redelivered"),
    Column("in/s", "in_rate"),
    Column("out/s", "out_rate"),
)


class Look(NamedTuple):
    """What `lmq top` shows at one moment: rows of doors and of queues."""

    doors: list[dict[str, Any]]
    queues: list[dict[str, Any]]


def status(
    *,
    watch: WatchOption = None,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the state of the gateway: what it stores, its alarms and connections."""
    client = AdminClient(admin, user, password)
    show_answer(lambda: client.get("/api/overview"), _tell, as_json=as_json, watch=watch)


def _tell(found: dict[str, Any]) -> None:
    print_facts(facts_of(found))
    if "doors" in found["lmq"]:
        print_table(DOORS[:-2], rows_of(found["lmq"]["doors"]))


def facts_of(found: dict[str, Any]) -> dict[str, object]:
    """Return what is told of the gateway as a whole."""
    ours, totals = found["lmq"], found["queue_totals"]
    state = {
        "version": ours["version"],
        "state": "ready" if ours["is_ready"] else "not ready",
        "uptime": f"{ours['uptime_ms'] // 1_000} s",
    }
    own = {
        "AMQP queues": found["object_totals"]["queues"],
        "ready": totals["messages_ready"],
        "unacknowledged": totals["messages_unacknowledged"],
    }
    if "log_bytes" not in ours:  # what a caller is told that sees its own virtual hosts alone
        return {**state, "disk": ours["disk"], "memory": ours["memory"], "alarms": ours["alarms"], **own}
    return {
        **state,
        "disk": _tell_disk(ours),
        "memory": _tell_memory(ours),
        "alarms": ours["alarms"],
        **_ends_of(ours.get("certificates_ending", ())),
        "messages stored": ours["messages_stored"],
        "light queues": ours["light_queues"],
        **own,
    }


def _tell_memory(ours: dict[str, Any]) -> str:
    limit = " (limits.memory_bytes_max)" if ours["memory"] == "low" else ""
    return f"{ours['memory']}, {ours['memory_bytes'] >> 20} MiB {_of(ours['memory_bytes_max'])}{limit}"


def _tell_disk(ours: dict[str, Any]) -> str:
    free, least, log = (ours[name] >> 20 for name in ("disk_free_bytes", "disk_free_bytes_min", "log_bytes"))
    wanted = f", {least} MiB have to be (store.disk_free_bytes_min)" if ours["disk"] == "low" else ""
    return f"{ours['disk']}, {free} MiB free{wanted}, the log has {log} MiB"


def _ends_of(certificates: Sequence[dict[str, Any]]) -> dict[str, object]:
    """Return a line for each certificate that expires soon or has expired."""
    now_s, lines = time(), []
    for one in certificates:
        days = abs(one["expires_at_ms"] / 1_000 - now_s) / 86_400
        is_over = one["expires_at_ms"] / 1_000 <= now_s
        when = f"expired {days:.1f} days ago" if is_over else f"expires in {days:.1f} days"
        lines.append(f"{one['file']} of {one['listener']} {one['address']} {when}")
    return {"certificates": lines} if lines else {}


def _of(bytes_max: int) -> str:
    return f"of {bytes_max >> 20} MiB" if bytes_max else "(no limit)"


def rows_of(doors: dict[str, Any], before: dict[str, Any] | None = None, passed_s: float = 1.0) -> list[dict[str, Any]]:
    """Return a row for each door, with rates where it is known what was before."""
    rows = []
    for name, door in doors.items():
        row = {"door": name, **door}
        if before is not None and name in before:
            row["in_rate"] = round((door["messages_in"] - before[name]["messages_in"]) / passed_s)
            row["out_rate"] = round((door["messages_out"] - before[name]["messages_out"]) / passed_s)
        rows.append(row)
    return rows


def top(
    *,
    every: float = typer.Option(1.0, min=0.2, help="Seconds between two screens."),
    count: int = typer.Option(0, min=0, help="Number of screens, 0 for no end."),
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show rates by door and the deepest queues, live, until Ctrl-C. With --json each screen is a line."""
    from itertools import islice

    looks = islice(_look(AdminClient(admin, user, password), every), count or None)
    try:
        if as_json:
            _print_looks(looks)
        else:
            _show_looks(looks)
    except KeyboardInterrupt:
        return


def _look(client: AdminClient, every_s: float) -> Iterator[Look]:
    """Yield what there is to be shown, again and again."""
    from threading import Event
    from time import monotonic

    before, before_s = None, 0.0
    while True:
        found, now_s = client.get("/api/overview"), monotonic()
        there = found["lmq"].get("doors", {})
        rows = rows_of(there, before, max(now_s - before_s, 0.001))
        yield Look(rows, client.get("/api/lmq/queues", DEEPEST_QUEUES)["items"])
        before, before_s = there, now_s
        Event().wait(every_s)


def _print_looks(looks: Iterator[Look]) -> None:
    import json

    for look in looks:
        print(json.dumps(look._asdict(), ensure_ascii=False), flush=True)


def _show_looks(looks: Iterator[Look]) -> None:
    import sys

    from rich.console import Group
    from rich.live import Live

    columns = next(kind.columns for kind in KINDS if kind.name == "queues")
    if not sys.stdout.isatty():  # one screen goes after the other
        for look in looks:
            print_table(DOORS, look.doors)
            print_table(columns, look.queues)
        return
    with Live(auto_refresh=False) as live:
        for look in looks:
            width = live.console.width
            doors = fit_table(DOORS, look.doors, width, SPARE_OF_DOORS)
            live.update(Group(doors, fit_table(columns, look.queues, width, SPARE)), refresh=True)
