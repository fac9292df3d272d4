"""In which order servers are measured."""

from __future__ import annotations

from tests.benchmarks.scenarios.bench import in_turn
from tests.benchmarks.scenarios.peers import PEERS


def test_each_server_is_the_first_of_a_round_in_its_turn():
    peers = [PEERS[name] for name in ("gateway", "null", "mosquitto")]
    orders = [in_turn(peers, number) for number in range(3)]
    assert [order[0] for order in orders] == peers
    assert all(sorted(each.name for each in order) == ["gateway", "mosquitto", "null"] for order in orders)
    assert in_turn(peers, 3) == peers
    assert in_turn([], 5) == []
