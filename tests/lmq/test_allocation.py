from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from lmq.allocation import (
    allocate_averagely,
    allocate_by_circle,
    allocate_by_config,
    allocate_by_consistent_hash,
    allocate_by_machine_room,
    allocate_near_machine_room,
)
from lmq.queues import MessageQueue


def queues_of(count: int, broker: str = "b") -> list[MessageQueue]:
    return [MessageQueue("T", broker, i) for i in range(count)]


def shares(allocate, queues, members) -> list[list[int]]:
    return [[queue.queue_id for queue in allocate(member, queues, members)] for member in members]


def room_of(client_id: str) -> str:
    return client_id.partition(".")[0]


WAYS = {
    "averagely": allocate_averagely,
    "by circle": allocate_by_circle,
    "near machine room": allocate_near_machine_room(lambda broker: broker[:1], lambda member: member[:1]),
    "consistent hash": allocate_by_consistent_hash(),
}


@pytest.mark.parametrize("way", WAYS)
@given(
    queues=st.sets(st.tuples(st.sampled_from(["b1", "b2", "c1"]), st.integers(0, 40)), max_size=60),
    names=st.sets(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=7),
)
def test_every_queue_is_one_member_s(way, queues, names):
    all_queues = sorted(MessageQueue("T", broker, number) for broker, number in queues)
    members = sorted(names)
    given_away = [queue for member in members for queue in WAYS[way](member, all_queues, members)]
    assert sorted(given_away) == all_queues


@pytest.mark.parametrize(
    ("count", "members", "expected"),
    [
        (8, "ab", [[0, 1, 2, 3], [4, 5, 6, 7]]),
        (8, "abc", [[0, 1, 2], [3, 4, 5], [6, 7]]),
        (2, "abc", [[0], [1], []]),
    ],
)
def test_neighbours_are_shared_out_averagely(count, members, expected):
    assert shares(allocate_averagely, queues_of(count), list(members)) == expected


def test_queues_are_dealt_in_a_circle():
    assert shares(allocate_by_circle, queues_of(8), list("abc")) == [[0, 3, 6], [1, 4, 7], [2, 5]]


def test_a_member_has_the_queues_that_it_was_told():
    allocate = allocate_by_config({MessageQueue("T", "b", 2), MessageQueue("T", "b", 99)})
    assert allocate("a", queues_of(4), ["a", "b"]) == [MessageQueue("T", "b", 2)]


def test_only_queues_of_the_named_rooms_are_shared_out():
    queues = sorted([*queues_of(5, "north@b1"), *queues_of(2, "south@b2"), *queues_of(2, "plain")])
    found = {member: allocate_by_machine_room({"north"})(member, queues, ["a", "b"]) for member in "ab"}
    assert {queue.broker_name for share in found.values() for queue in share} == {"north@b1"}
    assert [[queue.queue_id for queue in share] for share in found.values()] == [[0, 1, 4], [2, 3]]


def test_queues_go_to_members_in_their_room_and_those_of_an_empty_room_to_all():
    queues = sorted([*queues_of(4, "n.b"), *queues_of(2, "s.b"), *queues_of(2, "w.b")])
    allocate = allocate_near_machine_room(room_of, room_of)
    members = ["n.1", "n.2", "s.1"]
    found = {member: allocate(member, queues, members) for member in members}
    assert [(queue.broker_name, queue.queue_id) for queue in found["n.1"]] == [("n.b", 0), ("n.b", 1), ("w.b", 0)]
    assert [(queue.broker_name, queue.queue_id) for queue in found["s.1"]] == [("s.b", 0), ("s.b", 1)]


def test_few_queues_change_hands_when_a_member_leaves_the_ring():
    queues, members = queues_of(200), ["a", "b", "c", "d"]
    allocate = allocate_by_consistent_hash(50)
    before = {queue: member for member in members for queue in allocate(member, queues, members)}
    after = {queue: member for member in members[:3] for queue in allocate(member, queues, members[:3])}
    assert {queue for queue in queues if before[queue] != after[queue]} == {
        queue for queue, member in before.items() if member == "d"
    }


MEMBERS_OF_JAVA = ["10.0.0.1@1", "10.0.0.2@7", "10.0.0.3@x", "größe"]
ROOMS_OF_JAVA = {"10.0.0.1@1": "north", "10.0.0.2@7": "north"}
# What the Java client 5.5.0 gives each of these members, of nine queues of broker north@b1 and nine of south@b2.
SHARES_OF_JAVA = {
    "averagely": (allocate_averagely, ["n0 n1 n2 n3 n4", "n5 n6 n7 n8 s0", "s1 s2 s3 s4", "s5 s6 s7 s8"]),
    "by circle": (allocate_by_circle, ["n0 n4 n8 s3 s7", "n1 n5 s0 s4 s8", "n2 n6 s1 s5", "n3 n7 s2 s6"]),
    "by consistent hash": (
        allocate_by_consistent_hash(),
        ["n0 n1 n3 s3", "n2 n4 n5 n8 s5", "s1 s2 s4 s8", "n6 n7 s0 s6 s7"],
    ),
    "by machine room": (allocate_by_machine_room({"north"}), ["n0 n1 n8", "n2 n3", "n4 n5", "n6 n7"]),
    "near machine room": (
        allocate_near_machine_room(lambda broker: broker[:5], lambda member: ROOMS_OF_JAVA.get(member, "east")),
        ["n0 n1 n2 n3 n4 s0 s1 s2", "n5 n6 n7 n8 s3 s4", "s5 s6", "s7 s8"],
    ),
}


@pytest.mark.parametrize("way", SHARES_OF_JAVA)
def test_shares_are_those_of_the_java_client(way):
    allocate, expected = SHARES_OF_JAVA[way]
    queues = sorted([*queues_of(9, "north@b1"), *queues_of(9, "south@b2")])
    found = [
        " ".join(f"{queue.broker_name[0]}{queue.queue_id}" for queue in allocate(member, queues, MEMBERS_OF_JAVA))
        for member in MEMBERS_OF_JAVA
    ]
    assert found == expected
