from __future__ import annotations

import json

import pytest

from gateway.rocketmq.assignment import share_by_circle, share_evenly, share_for_pop


def ask(
    peer, topic: str = "T", client: str = "c1", strategy: str = "AVG", model: str = "CLUSTERING"
) -> list[int] | None:
    said = {"topic": topic, "consumerGroup": "g", "clientId": client, "strategyName": strategy, "messageModel": model}
    body = json.loads(bytes(peer.ask(400, json.dumps(said).encode()).body))
    found = body.get("messageQueueAssignments")
    if found is None:
        return None
    assert all(item["mode"] == "PULL" and item["messageQueue"]["brokerName"] == "lmq" for item in found)
    return [item["messageQueue"]["queueId"] for item in found]


def join(peer, client: str) -> None:
    peer.ask(34, json.dumps({"clientID": client, "consumerDataSet": [{"groupName": "g"}]}).encode())


def test_the_broker_shares_out_queues_where_clients_leave_it_to_it(site, peer):
    peer.send(b"x", d="5")
    assert ask(peer) is None  # not a member: it keeps what it has
    join(peer, "c1")
    assert ask(peer) == [0, 1, 2, 3, 4]
    join(site.connect(), "c2")
    assert (ask(peer), ask(peer, client="c2")) == ([0, 1, 2], [3, 4])
    assert ask(peer, client="c2", strategy="AVG_BY_CIRCLE") == [1, 3]
    assert ask(peer, model="BROADCASTING") == [0, 1, 2, 3, 4]
    assert ask(peer, "%LMQ%a", model="BROADCASTING") == [0]
    assert ask(peer, strategy="CONFIG") is None
    assert ask(peer, "Unknown") is None


@pytest.mark.parametrize("queues", range(1, 9))
@pytest.mark.parametrize("members", range(1, 6))
@pytest.mark.parametrize("share", [share_evenly, share_by_circle])
def test_each_queue_is_one_members(share, queues, members):
    shares = [share(list(range(queues)), index, members) for index in range(members)]
    assert sorted(queue for one in shares for queue in one) == list(range(queues))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def set_mode(peer, **changes: object):
    said = {"topic": "T", "consumerGroup": "g", "mode": "POP", "popShareQueueNum": 0} | changes
    return peer.ask(401, json.dumps(said).encode())


def ask_pop(peer, client: str = "c1", topic: str = "T") -> list[int]:
    said = {"topic": topic, "consumerGroup": "g", "clientId": client, "strategyName": "AVG",
            "messageModel": "CLUSTERING"}  # fmt: skip
    found = json.loads(bytes(peer.ask(400, json.dumps(said).encode()).body))["messageQueueAssignments"]
    assert {item["mode"] for item in found} == {"POP"}
    return [item["messageQueue"]["queueId"] for item in found]


def test_a_group_that_is_set_to_pop_is_given_all_queues_at_once(peer):
    peer.send(b"x")
    join(peer, "c1")
    assert set_mode(peer).code == 0
    assert ask_pop(peer) == [-1]
    assert set_mode(peer, topic="%LMQ%a").code == 0
    assert ask_pop(peer, topic="%LMQ%a") == [-1]
    assert ask(peer, "%RETRY%g") == [0]
    assert set_mode(peer, mode="PULL").code == 0
    assert ask(peer) == [0, 1, 2, 3]


def test_members_that_pop_may_share_some_queues_only(site, peer):
    peer.send(b"x", d="4")
    for number in range(1, 5):
        join(site.connect(), f"c{number}")
    assert set_mode(peer, popShareQueueNum=1).code == 0
    assert [ask_pop(peer, f"c{number}") for number in range(1, 5)] == [[0, 1], [1, 2], [2, 3], [3, 0]]
    set_mode(peer, popShareQueueNum=3)
    assert ask_pop(peer) == [-1]


def test_more_members_than_queues_have_one_each():
    shares = [share_for_pop(share_evenly, [0, 1, 2], index, 7, 1) for index in range(7)]
    assert shares == [[0], [1], [2], [0], [1], [2], [0]]
    assert share_for_pop(share_evenly, [], 3, 7, 1) == []


@pytest.mark.parametrize("queues", range(1, 9))
@pytest.mark.parametrize("members", range(2, 6))
@pytest.mark.parametrize("share_queues", range(4))
def test_by_pop_every_queue_is_taken_from(queues, members, share_queues):
    shares = [share_for_pop(share_evenly, list(range(queues)), i, members, share_queues) for i in range(members)]
    assert {-1} in map(set, shares) or {queue for one in shares for queue in one} == set(range(queues))
    assert all(len(set(one)) == len(one) for one in shares)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"topic": "Unknown"}, 17),
        ({"topic": "%RETRY%g"}, 16),
        ({"mode": "PUSH"}, 29),
        ({"popShareQueueNum": 1 << 20}, 29),
        ({"popShareQueueNum": "x"}, 29),
        ({"consumerGroup": ""}, 26),
    ],
)
def test_a_mode_that_cannot_be_is_refused(peer, changes, code):
    peer.send(b"x")
    assert set_mode(peer, **changes).code == code
