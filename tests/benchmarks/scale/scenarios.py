"""What is measured as it grows: for each scenario its sizes, its figures, and the bounds that they must keep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.benchmarks.figure import Figure
from tests.benchmarks.scale import churn, connections, fan_out, floods, light_queues, sessions, stored, subscriptions
from tests.benchmarks.scale.points import Bound, Samples
from tests.benchmarks.scale.progress import Run


@dataclass(frozen=True)
class Scenario:
    """One thing that grows, and what is looked at meanwhile."""

    name: str
    title: str
    sizes_of: str  # what the sizes count
    sizes: tuple[int, ...]
    measure: Callable[[Run, int], Samples]
    figures: tuple[Figure, ...]
    bounds: tuple[Bound, ...] = ()

    def figure(self, name: str) -> Figure:
        """Return one of the figures."""
        return next(each for each in self.figures if each.name == name)


SCENARIOS = (
    Scenario(
        "stored",
        "Stored records of 256 B, each in 3 light queues: start of the gateway on them",
        "records",
        (100_000, 1_000_000, 10_000_000),
        stored.measure,
        (
            Figure("clean_s", "ready after a stop", "s"),
            Figure("killed_s", "ready after kill -9", "s"),
            Figure("cold_s", "ready with nothing cached", "s"),
            Figure("private_mb", "private memory", "MB"),
            Figure("disk_mb", "on disk", "MB"),
        ),
        (
            Bound("clean_s", 3, 10_000_000),
            Bound("killed_s", 3, 10_000_000),
            Bound("private_mb", 300, 10_000_000),
        ),
    ),
    Scenario(
        "light-queues",
        "Light queues, each written twice at the RocketMQ door",
        "queues",
        (1_000, 10_000, 100_000, 1_000_000),
        light_queues.measure,
        (
            Figure("bytes_each", "private memory a queue", "B"),
            Figure("append_ns", "append to a random one", "ns"),
            Figure("append_times", "append, to that of one of 1,000", "x"),
            Figure("send_us", "server CPU of a send to a random one", "µs"),
            Figure("entries", "files and folders that came", ""),
            Figure("threads", "threads that came", ""),
            Figure("ready_s", "ready after a stop", "s"),
            Figure("ready_mb", "private memory then", "MB"),
        ),
        (
            Bound("bytes_each", 400, 1_000_000),
            Bound("append_times", 1.5, 1_000_000),
            Bound("entries", 20, 1_000_000, why="segments of 2,000,000 messages and their indexes"),
            Bound("threads", 0, 1_000_000),
            Bound("ready_s", 15, 1_000_000),
        ),
    ),
    Scenario(
        "fan-out",
        "1 KB to many durable AMQP queues in one publish",
        "queues",
        (1, 10, 100, 1_000, 10_000, 100_000),
        fan_out.measure,
        (
            Figure("confirm_us", "time to confirm", "µs"),
            Figure("further_ns", "for each queue beyond 1,000", "ns"),
            Figure("worst_us", "longest of 200", "µs"),
            Figure("cpu_us", "server CPU of a publish", "µs"),
            Figure("each_kb", "disk of a message, sets and indexes with it", "KB"),
            Figure("first_kb", "disk of the first one", "KB"),
            Figure("first_ms", "time to confirm the first one", "ms"),
            Figure("queue_bytes", "private memory a queue", "B"),
        ),
        (
            Bound("further_ns", 50, 10_000),
            Bound("further_ns", 50, 100_000),
            Bound("each_kb", 8, 1_000),
            Bound("first_kb", 2_000, 100_000),
            Bound("each_kb", 2_000, 100_000),
        ),
    ),
    Scenario(
        "depth",
        "1 KB to 1,000 durable AMQP queues that hold much already",
        "messages in each",
        (1, 10, 100, 1_000, 10_000),
        fan_out.measure_depth,
        (
            Figure("ratio", "time to confirm, to that of queues that held nothing", "x"),
            Figure("confirm_us", "time to confirm", "µs"),
            Figure("cpu_us", "server CPU of a publish", "µs"),
        ),
        (Bound("ratio", 1.1, 10_000, why="what one run differs from another"),),
    ),
    Scenario(
        "subscriptions",
        "MQTT subscriptions, exact (ID/cmd) and with wildcards (site/+/dev/ID/#)",
        "subscriptions",
        (1, 10, 100, 1_000, 10_000, 100_000, 1_000_000),
        subscriptions.measure,
        (
            Figure("exact_match_ns", "match, exact", "ns"),
            Figure("wildcard_match_ns", "match, wildcards", "ns"),
            Figure("route_ns", "queues of a topic, half of each", "ns"),
            Figure("publish_us", "server CPU of a publish to a new topic", "µs"),
            Figure("exact_bytes", "trie, an exact one", "B"),
            Figure("wildcard_bytes", "trie, a wildcard", "B"),
            Figure("exact_bound_bytes", "router with names, an exact one", "B"),
            Figure("wildcard_bound_bytes", "router with names, a wildcard", "B"),
            Figure("door_bytes", "whole, at the door", "B"),
        ),
    ),
    Scenario(
        "sessions",
        "MQTT QoS 1, 1 KB, to a topic that offline persistent sessions wait for",
        "sessions",
        (0, 1_000, 10_000, 100_000),
        sessions.measure,
        (
            Figure("times_cpu", "server CPU, to that of a topic that nobody wants", "x"),
            Figure("times_ms", "time to confirm 100, to that of a topic that nobody wants", "x"),
            Figure("cpu_us", "server CPU a message", "µs"),
            Figure("rate", "confirmed", "/s"),
            Figure("made_us", "time to make a session", "µs"),
            Figure("session_bytes", "private memory a session", "B"),
            Figure("ready_s", "ready after a stop", "s"),
        ),
        (Bound("times_cpu", 1.1, 100_000),),
    ),
    Scenario(
        "resume",
        "Persistent MQTT sessions that all come back at once, 20 messages waiting for each, beside a live pair",
        "sessions",
        (100, 1_000, 10_000),
        sessions.measure_resume,
        (
            Figure("connected_s", "all connected", "s"),
            Figure("all_s", "all served", "s"),
            Figure("first_p50_ms", "first message, p50", "ms"),
            Figure("first_p99_ms", "first message, p99", "ms"),
            Figure("first_max_ms", "first message, last of all", "ms"),
            Figure("unserved", "sessions not served", ""),
            Figure("cpu_us", "server CPU a message", "µs"),
            Figure("load_cpu", "load CPU", "%"),
            Figure("alone_p99_ms", "live pair before, p99", "ms"),
            Figure("live_p50_ms", "live pair beside them, p50", "ms"),
            Figure("live_p99_ms", "live pair, p99", "ms"),
            Figure("live_max_ms", "live pair, longest", "ms"),
            Figure("live_lost", "live pair, lost", ""),
        ),
        (
            Bound("unserved", 0, 10_000),
            Bound("live_lost", 0, 10_000),
            Bound("live_max_ms", 1_000, 10_000, why="longer would be starving"),
        ),
    ),
    Scenario(
        "connections",
        "MQTT QoS 1 from many connections at one total rate, to one wildcard subscriber",
        "connections",
        (1, 10, 100, 1_000),
        connections.measure,
        (
            Figure("cpu_us", "server CPU a message, 10,000/s", "µs"),
            Figure("cpu_more_us", "server CPU a message, 40,000/s", "µs"),
            Figure("share", "of the rate that was kept", "x"),
            Figure("lost", "messages lost", ""),
            Figure("bytes_each", "private memory a connection", "B"),
        ),
        (
            Bound("cpu_us", 2, 1_000, base=1),
            Bound("cpu_more_us", 2, 1_000, base=1),
            Bound("lost", 0, 1_000),
        ),
    ),
    Scenario(
        "churn",
        "Ever new names that come and go, 4 MiB for all caches: private memory that each of the second half leaves",
        "names",
        (20_000,),
        churn.measure,
        (
            Figure("topics_bytes", "a topic of 16 KB", "B"),
            Figure("clients_bytes", "a client identifier of 900 B", "B"),
            Figure("filters_bytes", "a filter with a message", "B"),
            Figure("queues_bytes", "an exclusive queue with a message", "B"),
            Figure("consumers_bytes", "a connection with a queue of its own", "B"),
            Figure("groups_bytes", "a RocketMQ group", "B"),
            Figure("private_mb", "private memory after the topics", "MB"),
        ),
        (
            *(
                Bound(f"{kind}_bytes", 100, 20_000, why="what a run differs from another")
                for kind in ("topics", "clients", "queues", "consumers", "groups")
            ),
            Bound("filters_bytes", 250, 20_000, why="the name of a light queue, which stays"),
        ),
    ),
    *(
        Scenario(
            f"floods-{flood.name}",
            f"A flood of one client, {flood.title}, beside a live pair at MQTT QoS 0",
            flood.title,
            (flood.size,),
            floods.measure_of(flood),
            (
                Figure("p50_ms", "live pair, p50", "ms"),
                Figure("p99_ms", "p99", "ms"),
                Figure("max_ms", "longest", "ms"),
                Figure("took_s", "the flood took", "s"),
                Figure("share_ms", "longest share of one", "ms"),
                Figure("turn_ms", "longest turn of readers", "ms"),
                Figure("peer_p99_ms", f"{flood.peer or 'peer'}, p99", "ms"),
                Figure("peer_max_ms", "longest", "ms"),
                Figure("peer_took_s", "the flood took", "s"),
            ),
            (Bound("p99_ms", 20, flood.size), Bound("max_ms", 100, flood.size)),
        )
        for flood in floods.FLOODS
    ),
)


def choose_sizes(scenario: Scenario, wanted: Sequence[int], size_max: float) -> list[int]:
    """Return the wanted sizes, the scenario's own where none is; those up to `size_max`."""
    return [size for size in wanted or scenario.sizes if size <= size_max]
