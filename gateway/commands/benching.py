"""Commands that measure a door, of this gateway or of another broker."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gateway.commands.bench.plan import Plan
from gateway.commands.doors.place import Door, Place, at_door
from gateway.commands.options import PLAIN
from gateway.commands.output import Column, print_json, print_table
from gateway.commands.refusing import EXIT_INTERRUPTED, EXIT_NOTHING, refuse

bench_cli = typer.Typer(**PLAIN, help="Measure publishers and consumers at any door, here or at another broker.")
NAME = "lmq-bench"
FIGURES = (
    Column("", "side"),
    Column("clients", "clients"),
    Column("messages", "messages"),
    Column("seconds", "seconds"),
    Column("msg/s", "rate"),
    Column("MiB/s", "mebibytes_rate"),
    Column("p50 ms", "p50_ms"),
    Column("p95 ms", "p95_ms"),
    Column("p99 ms", "p99_ms"),
    Column("max ms", "max_ms"),
)
NameArgument = Annotated[str, typer.Argument(metavar="[NAME]", help="A topic (MQTT, RocketMQ) or a queue (AMQP).")]
CountOption = Annotated[int, typer.Option("--count", "-c", min=1, help="Number of messages in all.")]
SizeOption = Annotated[
    int, typer.Option("--size", min=0, help="Bytes of each message; 16 or more also measure its latency.")
]
QosOption = Annotated[
    int, typer.Option("--qos", "-q", min=0, max=2, help="QoS; AMQP: 1 and 2 mean confirms and acknowledgements.")
]
RateOption = Annotated[
    float | None, typer.Option("--rate", min=0.001, help="Messages a second, by all publishers together.")
]
WindowOption = Annotated[
    int, typer.Option("--window", min=1, max=10_000, help="Messages of each publisher without an answer, at most.")
]
SecondsOption = Annotated[float | None, typer.Option("--seconds", min=0.1, help="End after this many seconds.")]
ExchangeOption = Annotated[str, typer.Option("--exchange", "-e", help="AMQP exchange; without it NAME is a queue.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as a JSON object.")]


@bench_cli.command("pub")
@at_door(Door.MQTT)
def bench_pub(
    place: Place,
    name: NameArgument = NAME,
    *,
    clients: Annotated[int, typer.Option("--clients", "-n", min=1, help="Number of publishers.")] = 1,
    count: CountOption = 100_000,
    size: SizeOption = 128,
    qos: QosOption = 1,
    rate: RateOption = None,
    window: WindowOption = 200,
    exchange: ExchangeOption = "",
    seconds: SecondsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Publish, and show messages and bytes a second, and how long answers take. Makes the AMQP queue NAME."""
    _run(place, Plan(name, clients, 0, count, size, qos, rate, window, exchange, seconds), as_json=as_json)


@bench_cli.command("sub")
@at_door(Door.MQTT)
def bench_sub(
    place: Place,
    name: NameArgument = NAME,
    *,
    clients: Annotated[int, typer.Option("--clients", "-n", min=1, help="Number of consumers.")] = 1,
    count: CountOption = 100_000,
    qos: QosOption = 1,
    seconds: SecondsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Receive what others publish, such as `bench pub`; show its rate and latency."""
    _run(place, Plan(name, 0, clients, count, qos=qos, seconds=seconds), as_json=as_json)


@bench_cli.command("pubsub")
@at_door(Door.MQTT)
def bench_pubsub(
    place: Place,
    name: NameArgument = NAME,
    *,
    pubs: Annotated[int, typer.Option("--pubs", min=1, help="Number of publishers.")] = 1,
    subs: Annotated[int, typer.Option("--subs", min=1, help="Number of consumers; in AMQP they share one queue.")] = 1,
    count: CountOption = 100_000,
    size: SizeOption = 128,
    qos: QosOption = 1,
    rate: RateOption = None,
    window: WindowOption = 200,
    seconds: SecondsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Publish and consume at the same time; exit code 3 if messages are missing."""
    _run(place, Plan(name, pubs, subs, count, size, qos, rate, window, seconds=seconds), as_json=as_json)


def _run(place: Place, plan: Plan, *, as_json: bool) -> None:
    from gateway.commands.bench.load import run as run_load
    from gateway.commands.doors.running import run

    told: dict[str, Any] = {}

    async def work() -> None:
        told.update(await run_load(place, plan))

    run(work(), interrupted=EXIT_INTERRUPTED)
    if as_json:
        print_json(told)
    else:
        print(
            f"{told['door']} {told['server']} {plan.name}, QoS {plan.qos}"
            + (f", {plan.size} bytes" if plan.size else "")
        )
        print_table(FIGURES, [_row(side, told[side]) for side in ("publishers", "consumers") if told[side]])
    _check(place, plan, told)


def _row(side: str, figures: dict[str, Any]) -> dict[str, Any]:
    return {"side": side, **figures, "mebibytes_rate": round(figures["bytes_rate"] / (1 << 20), 2)}


def _check(place: Place, plan: Plan, told: dict[str, Any]) -> None:
    if plan.publishers and plan.consumers:
        copies = 1 if place.door is Door.AMQP else plan.consumers
        wanted, found = told["publishers"]["messages"] * copies, told["consumers"]["messages"]
        if found < wanted and plan.seconds is None:
            refuse(f"only {found} of {wanted} messages came", code=EXIT_NOTHING)
