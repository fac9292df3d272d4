"""Put one load on a server that is already up: `python -m tests.benchmarks.scenarios HOST:PORT --qos 1 …`."""

from __future__ import annotations

import argparse

import uvloop

from tests.benchmarks.scenarios.mqtt_load import run


def main() -> None:
    """Run and print one line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("server")
    parser.add_argument("--secs", type=float, default=4)
    parser.add_argument("--publishers", type=int, default=1)
    parser.add_argument("--subscribers", type=int, default=1)
    parser.add_argument("--qos", type=int, default=0)
    parser.add_argument("--window", type=int, default=500)
    parser.add_argument("--payload-bytes", type=int, default=256)
    parser.add_argument("--filters", nargs="*")
    args = vars(parser.parse_args())
    host, _, port = args.pop("server").rpartition(":")
    result = uvloop.run(run(host, int(port), **args))
    print(
        f"{result.rate:,.0f} deliveries/s sent {result.sent:,} acked {result.acked:,} received {result.received:,} "
        f"in {result.secs:.2f} s, load's cpu {result.load_cpu_s:.2f} s"
    )


if __name__ == "__main__":
    main()
