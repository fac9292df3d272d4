from __future__ import annotations

import json

from tests.support.walks import all_of, take_steps


def test_connections_say_what_the_client_calls_itself(site, peer):
    said = {"clientID": "c1", "consumerDataSet": [{"groupName": "g", "subscriptionDataSet": []}]}
    peer.ask(34, json.dumps(said).encode())
    (entry,) = all_of(site.door.inventory().connections())
    assert (entry.conn_id, entry.user, entry.client) == (peer.transport.conn_id, "", "c1")
    assert list(site.door.inventory().sessions()) == []
    peer.close()
    assert all_of(site.door.inventory().connections()) == []


def test_queues_say_how_far_they_are_and_how_many_pulls_wait(site, peer):
    for _ in range(3):
        peer.send(b"x", topic="T")
    peer.start_pull("T", 3, sysFlag=6)
    site.settle()
    found = {entry.name: entry for entry in all_of(site.door.inventory().queues())}
    assert (found["T/0"].min_offset, found["T/0"].max_offset, found["T/0"].readers) == (0, 3, 1)
    assert found["T/0"].light_queue == "T/0"


def test_walk_goes_on_while_topics_and_connections_go(site, peer):
    for i in range(5):
        peer.send(b"x", topic=f"T{i}")
    walk, connections = site.door.inventory().queues(), site.door.inventory().connections()
    assert len(take_steps(walk, 1)) == 1
    for i in range(5):
        site.door.topics.delete(b"T%d" % i)
    peer.close()
    assert all_of(connections) == []
    assert len(all_of(walk)) <= 8  # the other queues of the topic that was begun with


def test_of_a_message_each_group_that_committed_says_how_far_it_is(site, peer):
    for _ in range(3):
        peer.send(b"x", topic="T")
    assert peer.ask(15, consumerGroup="g", topic="T", queueId=0, commitOffset=2).code == 0
    found = [
        (fate.kind, fate.stage.value)
        for offset in range(3)
        for fate in all_of(site.door.inventory().fates(b"T/0", offset))
    ]
    assert found == [("group", "done"), ("group", "done"), ("group", "waits")]
    assert all_of(site.door.inventory().fates(b"T/1", 0)) == []
