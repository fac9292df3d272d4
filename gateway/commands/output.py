"""How answers are shown: tables for people, JSON for programs, once or again and again."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

MOMENT = "at_ms"  # what the names of moments end with
EMPTY = "-"
DEFAULT_EXCHANGE = "(default)"
QUEUE_KEYS = {"door", "name", "vhost"}  # of what names a queue
GAP = 3  # between two columns
EDGES = 2  # columns that a table's frame leaves empty, one on each side
FIRST_LEAST = 24  # letters of a name that are shown before columns are; chosen: names of queues have about so many
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # all but a tab and the end of a line


class Column(NamedTuple):
    """One column of a table: what stands above it, and where in an answer it is found, a dot leads into an object."""

    title: str
    key: str


def print_json(answer: object) -> None:
    """Print an answer as it is."""
    import json

    print(json.dumps(answer, indent=2, ensure_ascii=False))


def print_listed(answer: object, lines: Sequence[str], *, as_json: bool) -> None:
    """Print an answer as JSON, or the lines that tell it, of which there may be none."""
    if as_json:
        print_json(answer)
    else:
        for line in lines:
            print(line)


def print_done(done: dict[str, Any], *, as_json: bool) -> None:
    """Say to programs what was done; people see by the exit code that it was."""
    if as_json:
        print_json(done)


def print_table(columns: Sequence[Column], rows: Sequence[dict[str, Any]], spare: Sequence[str] = ()) -> None:
    """Print rows as a table, numbers to the right; where nobody looks at a terminal its lines are not cut.

    Of those titles that `spare` names, so many are left out that each row is one line of the terminal.
    """
    import sys

    from rich.console import Console

    is_seen = sys.stdout.isatty()
    console = Console(width=None if is_seen else 10_000, highlight=False)
    with console.capture() as shown:  # rich would end the command, as at fault, where the reader of a pipe is gone
        console.print(
            fit_table(columns, rows, console.width, spare) if is_seen and spare else make_table(columns, rows)
        )
    print(shown.get(), end="", flush=True)


def fit_table(columns: Sequence[Column], rows: Sequence[dict[str, Any]], width: int, spare: Sequence[str]) -> Any:  # noqa: ANN401 - as below
    """Return rows as rich's table in which each is one line.

    Args:
        columns: The first is cut where it is too long for its line.
        rows: What stands in them.
        width: What a line has room for.
        spare: Titles of columns that are left out, in this order, until the others have room.
    """
    widths = {
        column.title: max(len(column.title), *(len(tell_line(find(row, column.key), column.key)) for row in rows), 0)
        for column in columns
    }
    first, shown, room = columns[0], list(columns), 0
    for title in [None, *spare]:
        shown = [column for column in shown if column.title != title]
        room = width - EDGES - sum(widths[column.title] + GAP for column in shown[1:])
        if room >= min(widths[first.title], FIRST_LEAST):
            break
    table = make_table(shown, rows)
    for column in table.columns:
        column.no_wrap, column.overflow = True, "ellipsis"
    table.columns[0].max_width = max(room, 1)
    return table


def make_table(columns: Sequence[Column], rows: Sequence[dict[str, Any]]) -> Any:  # noqa: ANN401 - rich is not loaded yet
    """Return rows as rich's table."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    cells = [[find(row, column.key) for column in columns] for row in rows]
    for number, column in enumerate(columns):
        is_number = any(isinstance(line[number], int | float) for line in cells) and not column.key.endswith(MOMENT)
        table.add_column(column.title, justify="right" if is_number else "left", overflow="fold")
    for line in cells:
        table.add_row(*(Text(tell_line(value, column.key)) for value, column in zip(line, columns, strict=True)))
    return table


def find(row: object, key: str) -> object:
    """Return what is at a path in an answer, None where there is nothing."""
    for name in key.split("."):
        if not isinstance(row, dict):
            return None
        row = row.get(name)
    return row


def has(row: object, key: str) -> bool:
    """Return whether there is something at a path in an answer, be it None."""
    *inside, last = key.split(".")
    place = find(row, ".".join(inside)) if inside else row
    return isinstance(place, dict) and last in place


def tell(value: object, key: str = "") -> str:
    """Return a value as people read it."""
    if value is None or value == "":
        return EMPTY
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and (key.endswith((MOMENT, "connected_at"))):
        return datetime.fromtimestamp(value / 1_000, UTC).isoformat(" ", "seconds").removesuffix("+00:00")
    if isinstance(value, dict):
        return _tell_fields(value)
    if isinstance(value, list):
        told = [tell(inner) for inner in value]
        return (", " if any(" " in one for one in told) else " ").join(told) or EMPTY
    return escape(str(value))


def _tell_fields(fields: dict[str, Any]) -> str:
    if fields.keys() == QUEUE_KEYS:
        place = f"{fields['door']}, {fields['vhost']}" if fields["vhost"] else str(fields["door"])
        return escape(f"{fields['name']} ({place})")
    return " ".join(f"{escape(name)}={tell(inner)}" for name, inner in fields.items()) or EMPTY


def tell_line(value: object, key: str = "") -> str:
    """Return a value as people read it, in one line: a name with the end of a line in it is no second row."""
    return tell(value, key).replace("\n", "\\n").replace("\t", "\\t")


def escape(text: str) -> str:
    """Return text with control characters escaped: clients choose names, which are no orders to a terminal."""
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def tell_address(message: dict[str, Any]) -> str:
    """Return where a message was published: a topic, or an exchange and a routing key."""
    if message["exchange"] is None:
        return str(message["topic"])
    return f"{message['exchange'] or DEFAULT_EXCHANGE} {message['routing_key']}".rstrip()


def print_facts(answer: dict[str, Any]) -> None:
    """Print the fields of one thing, one a line."""
    width = max((len(name) for name in answer), default=0)
    for name, value in answer.items():
        print(f"{name:<{width}}  {tell_line(value, name)}")


def show_answer(
    ask: Callable[[], Any],
    print_it: Callable[[Any], None],
    *,
    as_json: bool,
    watch: float | None,
    key: str | None = None,
) -> None:
    """Ask and show what is answered, once or at an interval.

    Args:
        ask: Asks, and returns the answer.
        print_it: Prints an answer for people.
        as_json: Print it for programs.
        watch: Seconds between two times; None for once.
        key: The field of an answer that programs get; None for all of it.
    """

    def show() -> None:
        found = ask()
        if as_json:
            print_json(found if key is None else found[key])
        else:
            print_it(found)

    repeat(show, watch)


def repeat(show: Callable[[], None], every_s: float | None) -> None:
    """Show something once, or at an interval until the user stops it; only a terminal is cleared in between."""
    import sys
    from threading import Event

    show()
    while every_s is not None:
        sys.stdout.flush()  # a pipe's reader waits for it
        try:
            Event().wait(every_s)
        except KeyboardInterrupt:
            return
        if sys.stdout.isatty():
            print("\x1b[2J\x1b[H", end="")
        show()
