from __future__ import annotations

import random
from collections import Counter

import pytest

from gateway.churn import KEYS_MAX, WINDOW_S, Churn, host_of


class At:
    def __init__(self):
        self.s = 100.0

    def __call__(self):
        return self.s


@pytest.fixture
def at():
    return At()


def test_what_comes_most_often_is_told_first(at):
    churn = Churn(at)
    for number in range(5):
        churn.note_connection("mqtt", f"192.0.2.7:{number}")
        churn.note_login("mqtt", f"192.0.2.7:{number}", "sensor-1", "ann", "wrong password")
    churn.note_connection("amqp", "[2001:db8::1]:5")
    churn.note_connection("amqp", "192.0.2.7", "connects_rate")
    told, missed_max = churn.find_connections(10)
    assert [(one.door, one.host, one.outcome, count) for one, count in told] == [
        ("mqtt", "192.0.2.7", "connected", 5),
        ("amqp", "192.0.2.7", "connects_rate", 1),
        ("amqp", "2001:db8::1", "connected", 1),
    ]
    assert missed_max == 0
    assert [(*one, count) for one, count in churn.find_logins(10)[0]] == [
        ("mqtt", "192.0.2.7", "sensor-1", "ann", "wrong password", 5)
    ]
    assert churn.find_connections(1)[0] == told[:1]


def test_what_came_over_a_minute_ago_is_forgotten(at):
    churn = Churn(at)
    churn.note_connection("mqtt", "192.0.2.1:1")
    at.s += WINDOW_S
    churn.note_connection("mqtt", "192.0.2.2:1")
    churn.note_connection("mqtt", "192.0.2.1:2")
    assert [(one.host, count) for one, count in churn.find_connections(9)[0]] == [("192.0.2.1", 2), ("192.0.2.2", 1)]
    assert churn.within_s() == WINDOW_S
    at.s += WINDOW_S
    assert [(one.host, count) for one, count in churn.find_connections(9)[0]] == [("192.0.2.1", 1), ("192.0.2.2", 1)]
    at.s += 2 * WINDOW_S
    assert churn.find_connections(9) == ([], 0)
    assert churn.within_s() == 0


def test_a_loop_is_found_among_any_number_of_others_and_memory_stays(at):
    churn, chance = Churn(at), random.Random(7)
    came = Counter({"loop": 600, "slow loop": 300}) + Counter(f"device-{number}" for number in range(20_000))
    arriving = list(came.elements())
    chance.shuffle(arriving)
    for client in arriving:
        churn.note_login("mqtt", "192.0.2.9:1", client, "", "logged in")
    told, missed_max = churn.find_logins(10_000)
    assert len(told) <= KEYS_MAX
    assert [one.client for one, _ in told[:2]] == ["loop", "slow loop"]
    assert missed_max <= len(arriving) / KEYS_MAX
    for one, count in told:
        assert count <= came[one.client] <= count + missed_max


@pytest.mark.parametrize(
    ("peer", "host"),
    [
        ("192.0.2.7:5", "192.0.2.7"),
        ("192.0.2.7", "192.0.2.7"),
        ("[2001:db8::1]:5", "2001:db8::1"),
        ("2001:db8::1", "2001:db8::1"),
        ("unix:0", "unix"),
        ("via 192.0.2.7:5", "via 192.0.2.7"),
    ],
)
def test_the_host_of_a_peer(peer, host):
    assert host_of(peer) == host
