"""What groups are given once more is counted: by POP, and from their retry topics."""

from __future__ import annotations

from core.metrics import DoorMetrics
from gateway.rocketmq import retried
from gateway.rocketmq.retried import Retried
from tests.support.rocketmq_pop import ack, pop


def _told(site):
    inventory = site.door.inventory()
    (repeating,) = (one for one in inventory.repeating_groups() if one is not None)
    assert repeating in list(inventory.groups())
    walk = inventory.groups()
    return {(one.group, one.topic): one.redelivered for one in walk if one is not None and one.redelivered}


def test_what_a_consumer_did_not_acknowledge_is_counted_when_it_is_given_again(site, peer):
    for i in range(3):
        peer.send(b"m%d" % i)
    ack(peer, pop(peer)[0])
    assert site.door.metrics.redelivered == 0
    for times in (1, 2):
        site.now_ms += 60_000
        assert len(pop(peer)) == 2
        assert site.door.metrics.redelivered == 2 * times
    site.door.claims.commit_floors()  # which the door does at intervals
    assert _told(site) == {("g", "T/0"): 4}


def test_what_is_pulled_or_popped_of_a_retry_topic_was_sent_back_before(site, peer):
    for _ in range(2):
        peer.send(b"again", topic="%RETRY%g")
    peer.send(b"new")
    assert peer.pull("T", commitOffset=0, sysFlag=5).code == 0
    assert site.door.metrics.redelivered == 0
    assert peer.pull("%RETRY%g", commitOffset=0, sysFlag=5).code == 0
    assert site.door.metrics.redelivered == 2
    assert len(pop(peer, "%RETRY%g")) == 2
    assert site.door.metrics.redelivered == 4
    assert _told(site) == {("g", "%RETRY%g/0"): 4}


def test_the_group_that_had_its_first_longest_ago_is_forgotten(monkeypatch):
    monkeypatch.setattr(retried, "KNOWN_MAX", 2)
    metrics = DoorMetrics("rocketmq")
    counts = Retried(metrics)
    for group in (b"a", b"b", b"a", b"c"):
        counts.note(group, b"T/0", 1)
    assert [counts.find(group, b"T/0") for group in (b"a", b"b", b"c")] == [0, 1, 1]
    assert metrics.redelivered == 4
