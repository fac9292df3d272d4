"""What the demo shows while it runs and at its end."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gateway.demo.ledger import Ledger, Verdict
from gateway.demo.plan import Consumer, Door

_DOOR_STYLES: dict[Door, str] = {"mqtt": "cyan", "amqp": "magenta", "sdk": "green"}


class Rates:
    """Turns counts into rates between two looks at them."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[float, int]] = {}
        self._rates: dict[str, float] = {}

    def update(self, name: str, count: int, now_s: float) -> float:
        """Return the rate of `name` a second, over at least half a second."""
        at_s, before = self._last.setdefault(name, (now_s, count))
        if now_s - at_s >= 0.5:  # noqa: PLR2004 - shorter looks make jumpy figures
            self._rates[name] = (count - before) / (now_s - at_s)
            self._last[name] = (now_s, count)
        return self._rates.get(name, 0.0)


def live_view(ledger: Ledger, rates: Rates, phase: str, connected: int, now_s: float) -> RenderableType:
    """Return the table that is shown while messages flow."""
    table = _new_table("expected", "received", "on the way", "a second", "repeats")
    for name, own in ledger.arrivals.items():
        expected, received = ledger.expected[name], len(own.seen)
        table.add_row(
            *_consumer_cells(own.consumer),
            _count(expected),
            _count(received),
            _count(max(0, expected - received)),
            _count(rates.update(name, received, now_s)),
            _count(own.repeats),
        )
    sent = len(ledger.sent)
    head = Text.assemble(
        (f"{phase}  ", "bold"),
        f"{connected} devices connected, ",
        (_count(sent), "bold"),
        f" messages sent, {_count(rates.update('', sent, now_s))} a second",
    )
    return Group(head, table)


def verdict_view(verdicts: Sequence[Verdict]) -> RenderableType:
    """Return the table of what arrived against what was sent."""
    table = _new_table("expected", "received", "missing", "invented", "altered", "repeats", "")
    for verdict in verdicts:
        faults = (verdict.missing, verdict.invented, verdict.altered)
        mark = Text("exact", "bold green") if verdict.is_good else Text("WRONG", "bold red")
        table.add_row(
            *_consumer_cells(verdict.consumer),
            _count(verdict.expected),
            _count(verdict.received),
            *(_fault(count) for count in faults),
            _count(verdict.repeats),
            mark,
        )
    notes = [note for verdict in verdicts for note in _notes(verdict)]
    return Group(table, *notes)


def _notes(verdict: Verdict) -> list[Text]:
    told = []
    if verdict.unsaid_repeats:
        told.append(f"{verdict.unsaid_repeats} repeats that were not said to be repeats")
    if verdict.not_come_back:
        told.append(f"{verdict.not_come_back} messages that were given back did not come again")
    if verdict.error:
        told.append(verdict.error)
    return [Text(f"{verdict.consumer.name}: {note}", "red") for note in told]


def _new_table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("consumer", no_wrap=True)
    table.add_column("door", no_wrap=True)
    table.add_column("reads", overflow="fold", min_width=23)
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _consumer_cells(consumer: Consumer) -> tuple[Text, Text, Text]:
    return (
        Text(consumer.name),
        Text(consumer.door, _DOOR_STYLES[consumer.door]),
        Text("\n".join(consumer.filters), "dim"),
    )


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _fault(count: int) -> Text:
    return Text(_count(count), "bold red" if count else "dim")
