from __future__ import annotations

import json

import pytest

from gateway.rocketmq.assignment import share_by_circle, share_evenly


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


def test_a_group_is_told_that_it_cannot_pop(peer):
    said = {"topic": "T", "consumerGroup": "g", "mode": "POP", "popShareQueueNum": 0}
    answer = peer.ask(401, json.dumps(said).encode())
    assert answer.code == 1
    assert "POP is not supported" in answer.remark
    assert peer.ask(401, json.dumps(said | {"mode": "PULL"}).encode()).code == 0
