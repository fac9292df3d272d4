"""Put one load on a server that is already up: `python -m tests.benchmarks.scenarios mqtt HOST:PORT --qos 1 …`."""

from __future__ import annotations

import argparse

import uvloop

from gateway.address import parse_address
from tests.benchmarks.scenarios import amqp_load, mqtt_load


def main() -> None:
    """Run and print one line."""
    parser = argparse.ArgumentParser()
    doors = parser.add_subparsers(dest="door", required=True)
    mqtt, amqp = doors.add_parser("mqtt"), doors.add_parser("amqp")
    for door in (mqtt, amqp):
        door.add_argument("server")
        door.add_argument("--secs", type=float, default=4)
        door.add_argument("--payload-bytes", type=int, default=256)
    mqtt.add_argument("--publishers", type=int, default=1)
    mqtt.add_argument("--subscribers", type=int, default=1)
    mqtt.add_argument("--qos", type=int, default=0)
    mqtt.add_argument("--window", type=int, default=500)
    mqtt.add_argument("--filters", nargs="*")
    amqp.add_argument("--queues", type=int, default=1)
    amqp.add_argument("--consumers", type=int)
    amqp.add_argument("--window", type=int, default=2_000)
    args = vars(parser.parse_args())
    load = mqtt_load.run if args.pop("door") == "mqtt" else amqp_load.run
    result = uvloop.run(load(*parse_address(args.pop("server")), **args))
    print(
        f"{result.rate:,.0f} deliveries/s sent {result.sent:,} acked {result.acked:,} received {result.received:,} "
        f"in {result.secs:.2f} s, load's cpu {result.load_cpu_s:.2f} s"
    )


if __name__ == "__main__":
    main()
