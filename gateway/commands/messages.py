"""Commands that tell where messages went."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gateway.commands.client import AdminClient, quote
from gateway.commands.completing import complete_sessions
from gateway.commands.options import ADMIN, AdminOption, JsonOption, PasswordOption, UserOption
from gateway.commands.output import (
    DEFAULT_EXCHANGE,
    MOMENT,
    Column,
    escape,
    print_facts,
    print_json,
    print_table,
    tell,
    tell_address,
)

TRACE_S = 0.5  # between two questions; chosen: it looks live
READERS = (
    Column("kind", "kind"),
    Column("reader", "reader"),
    Column("how far", "how_far"),
    Column("when", "when"),
    Column("by", "by"),
    Column("letter", "letter"),
    Column("", "note"),
)
OWED = (
    Column("filter", "topic_filter"),
    Column("qos", "qos"),
    Column("waiting", "waiting"),
    Column("in flight", "inflight"),
    Column("next", "next_offset"),
    Column("light queue", "light_queue"),
)


def message(
    message_id: Annotated[
        str, typer.Argument(help="The id that lists of messages show, or RocketMQ's offset message id.")
    ],
    *,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show where a message went: its light queues, and each reader's state and outcome."""
    found = AdminClient(admin, user, password).get(f"/api/lmq/messages/{quote(message_id)}", as_member=True)
    if as_json:
        print_json(found)
        return
    print_facts(_facts_of(found))
    for queue in found["queues"]:
        print()
        print_facts({name: value for name, value in queue.items() if name != "readers"})
        if queue["readers"]:
            print_table(READERS, [{**one, **_tell_fate(one)} for one in queue["readers"]])


def _tell_fate(reader: dict[str, Any]) -> dict[str, Any]:
    """Return what is told of a reader: an outcome in place of `done`, and when."""
    moments = [tell(reader[name], MOMENT) if reader[name] else "" for name in ("from_ms", "until_ms")]
    after, before = moments
    when = after if after == before else " to ".join(moments) if after and before else after and f"after {after}"
    return {
        "how_far": reader["outcome"] or reader["stage"],
        "when": when or (before and f"before {before}"),
        "letter": reader["letter"] and reader["letter"]["id"],
    }


def _facts_of(found: dict[str, Any]) -> dict[str, Any]:
    """Return what is told of a message itself, with the address of its door: topic, or exchange and key."""
    hidden = {"queues", "exchange", "routing_key"} if found["exchange"] is None else {"queues", "topic"}
    told = {name: value for name, value in found.items() if name not in hidden}
    return told if found["exchange"] != "" else {**told, "exchange": DEFAULT_EXCHANGE}


def device(
    client: Annotated[str, typer.Argument(help="An MQTT client identifier.", autocompletion=complete_sessions)],
    *,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the messages that an MQTT client has not received yet, by subscription."""
    found = AdminClient(admin, user, password).get(f"/api/lmq/devices/{quote(client)}")
    if as_json:
        print_json(found)
        return
    print_facts({name: value for name, value in found.items() if name != "subscriptions"})
    print_table(OWED, found["subscriptions"])


def trace(
    topic_filter: Annotated[
        str,
        typer.Argument(
            metavar="FILTER", help="Topics, by an MQTT filter; with --exchange binding keys, such as orders.*"
        ),
    ] = "#",
    *,
    exchange: Annotated[
        str | None, typer.Option(help='Only messages by this AMQP exchange; "" is the default one.')
    ] = None,
    count: Annotated[int | None, typer.Option(min=1, help="End after this many messages.")] = None,
    offset: Annotated[
        int | None, typer.Option(min=0, help="Begin at this offset of the parent topic, in place of now.")
    ] = None,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show each message published by MQTT or AMQP from now on, with its queues; a topic of RocketMQ is refused."""
    import json
    import sys
    from threading import Event

    client = AdminClient(admin, user, password)
    left = sys.maxsize if count is None else count
    try:
        while left > 0:
            told = client.get(
                "/api/lmq/trace", {"filter": topic_filter, "exchange": exchange, "offset": offset}, as_member=True
            )
            if told["skipped"]:
                print(f"lmq: {told['skipped']} messages were too many to be looked at", file=sys.stderr)
            for item in told["items"][:left]:
                print(json.dumps(item, ensure_ascii=False) if as_json else _trace_line(item), flush=True)
            left -= len(told["items"])
            if offset is None or told["next_offset"] == offset:
                Event().wait(TRACE_S)
            offset = told["next_offset"]
    except KeyboardInterrupt:
        return


def _trace_line(item: dict[str, Any]) -> str:
    names = [f"{queue['door']} {queue['name']}" + _of(queue["vhost"]) for queue in item["queues"]]
    more = item["queue_count"] - len(names)
    reached = ", ".join([*names, *([f"{more} more"] if more else [])]) or "no queue"
    by = item["client"] or item["user"] or item["door"]
    what = f"{tell_address(item)} by {by}, {item['body_bytes']} bytes, id {item['id']}"
    return escape(f"{tell(item['stored_at_ms'], MOMENT)} {what} -> {reached}")


def _of(vhost: str) -> str:
    return f" in {vhost}" if vhost else ""
