"""In which order servers are measured."""

from __future__ import annotations

from itertools import pairwise

from tests.benchmarks.scenarios.bench import shuffled
from tests.benchmarks.scenarios.peers import PEERS

NAMES = ("gateway", "null", "mosquitto", "nats")


def test_no_server_always_follows_the_same():
    peers = [PEERS[name] for name in NAMES]
    orders = [[peer.name for peer in shuffled(peers, number)] for number in range(20)]
    assert all(sorted(order) == sorted(NAMES) for order in orders)
    assert {order[0] for order in orders} == set(NAMES)
    assert len({pair for order in orders for pair in pairwise(order)}) == len(NAMES) * (len(NAMES) - 1)


def test_order_of_a_round_is_the_same_in_each_run():
    peers = list(PEERS.values())
    assert shuffled(peers, 3) == shuffled(peers, 3) != shuffled(peers, 4)
    assert shuffled([], 5) == []
