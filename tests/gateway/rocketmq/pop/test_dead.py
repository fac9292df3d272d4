"""Messages that were given as often as their group wants them."""

from __future__ import annotations

import json
import shutil

import pytest

from core.store.embedded import EmbeddedEngine
from gateway.rocketmq.pop.dead import STORING_MS
from tests.support.late_engine import LateEngine
from tests.support.rocketmq_door import DoorSite, records_of
from tests.support.rocketmq_pop import ack, pop, start_pop


def limit(peer, times: int) -> None:
    assert peer.ask(200, json.dumps({"groupName": "g", "retryMaxTimes": times}).encode()).code == 0


def pop_until_gone(site, peer, topic: str = "T", **changes) -> list[int]:
    """Return the attempts before of each time that a message was given, until it is not given any more."""
    seen = []
    for _ in range(30):
        messages = pop(peer, topic, **changes)
        if not messages:
            return seen
        seen += [message.attempts for message in messages]
        site.now_ms += 60_000
        site.turn()
    raise AssertionError("it comes for ever")


@pytest.mark.parametrize("order", ["false", "true"])
def test_a_message_that_fails_as_often_as_the_group_allows_is_a_dead_letter(site, peer, order):
    limit(peer, 2)
    peer.send(b"bad", properties="TAGS\x01a\x02KEYS\x01k\x02")
    assert pop_until_gone(site, peer, order=order) == [0, 1, 2]
    (letter,) = records_of(peer.pull("%DLQ%g"))
    assert (letter.body, letter.reconsume_times) == (b"bad", 3)
    assert letter.properties[b"RETRY_TOPIC"] == b"T"
    assert (letter.properties[b"TAGS"], letter.properties[b"KEYS"]) == (b"a", b"k")
    site.turn()
    site.now_ms += 60_000
    assert pop(peer, order=order) == []
    assert len(records_of(peer.pull("%DLQ%g"))) == 1


def test_a_group_without_settings_is_given_a_message_seventeen_times(site, peer):
    peer.send(b"bad")
    assert pop_until_gone(site, peer) == list(range(17))


def test_what_a_record_says_of_earlier_attempts_counts(site, peer):
    limit(peer, 3)
    peer.send(b"bad", j="2")
    assert pop_until_gone(site, peer) == [2, 3]


def test_one_that_fails_does_not_take_others_with_it(site, peer):
    limit(peer, 1)
    for body in (b"bad", b"good"):
        peer.send(body)
    (bad, good) = pop(peer)
    ack(peer, good)
    site.now_ms += 60_000
    pop(peer)
    site.now_ms += 60_000
    peer.send(b"next")
    assert [message.body for message in pop(peer, maxMsgNums=1) + pop(peer)] == [b"next"]
    assert [letter.body for letter in records_of(peer.pull("%DLQ%g"))] == [bad.body]


@pytest.mark.here(reason="the turns that bring a message bring the one after it too")
def test_in_order_what_follows_a_dead_letter_comes_then(site, peer):
    limit(peer, 0)
    for body in (b"bad", b"next"):
        peer.send(body)
    pop(peer, order="true", maxMsgNums=1)
    site.now_ms += 60_000
    assert pop(peer, order="true") == []
    site.turn()
    assert [message.body for message in pop(peer, order="true")] == [b"next"]


def test_while_the_disk_is_low_a_message_waits_and_none_is_lost(site, peer):
    limit(peer, 0)
    peer.send(b"bad")
    pop(peer)
    site.set_free(0)
    site.now_ms += 60_000
    assert pop(peer) == []
    site.set_free(1 << 40)
    site.now_ms += 60_000
    assert pop(peer) == []
    assert [letter.body for letter in records_of(peer.pull("%DLQ%g"))] == [b"bad"]


def test_a_message_of_a_light_queue_goes_to_the_dead_letters_alone(site, peer):
    limit(peer, 0)
    peer.send(b"bad", properties="INNER_MULTI_DISPATCH\x01%LMQ%a,%LMQ%b\x02")
    pop(peer, "%LMQ%a")
    site.now_ms += 60_000
    assert pop(peer, "%LMQ%a") == []
    (letter,) = records_of(peer.pull("%DLQ%g"))
    assert b"INNER_MULTI_DISPATCH" not in letter.properties
    assert len(pop(peer, "%LMQ%b")) == 1
    assert pop(peer, "%LMQ%b") == []


def test_a_letter_is_not_made_twice_while_it_is_being_stored(site, peer):
    limit(peer, 0)
    peer.send(b"bad")
    pop(peer, invisibleTime=1)
    site.now_ms += 1
    site.turn()
    for _ in range(5):
        start_pop(peer, invisibleTime=1)
        site.now_ms += 1
        site.broker.handle_timer(site.now_ms)
    site.turn()
    peer.take()
    assert len(records_of(peer.pull("%DLQ%g"))) == 1


def begin_letter(site, folder) -> None:
    """Let a message that was given once too often become a dead letter, whose outcome is not told yet."""
    peer = site.connect()
    limit(peer, 0)
    peer.send(b"bad")
    assert len(pop(peer, invisibleTime=1_000)) == 1
    site.now_ms += 1_000
    site.turn()
    start_pop(peer)


@pytest.mark.at_once(reason="a stop waits for nothing that an engine is still to tell")
@pytest.mark.parametrize("turns", [0, 1])
@pytest.mark.parametrize("is_clean", [True, False])
def test_a_letter_is_there_once_after_a_stop_and_at_least_once_after_a_kill(tmp_path, is_clean, turns):
    site = DoorSite(tmp_path / "d")
    begin_letter(site, tmp_path)
    for _ in range(turns):
        site.turn()
    if is_clean:
        site.engine.durability.end()
        site.close()
        folder = tmp_path / "d"
    else:
        folder = tmp_path / "killed"
        shutil.copytree(tmp_path / "d", folder)
        site.close()
    now_ms = site.now_ms
    site = DoorSite(folder)
    site.now_ms = now_ms + 10 * STORING_MS
    peer = site.connect()
    for _ in range(3):
        assert pop(peer) == []
        site.turn()
        site.now_ms += 10 * STORING_MS
        site.turn()
    letters = records_of(peer.pull("%DLQ%g"))
    assert [letter.body for letter in letters] == [b"bad"] * (1 if is_clean or turns else 2)
    site.close()


def test_a_letter_that_is_lost_is_made_anew(tmp_path):
    site = DoorSite(
        tmp_path / "d", make_engine=lambda store, is_sync: LateEngine(EmbeddedEngine(store, is_sync=is_sync))
    )
    site.open_queues()
    begin_letter(site, tmp_path)
    site.engine.failures = 1.0
    site.now_ms += STORING_MS
    site.turn()
    peer = site.connect()
    assert pop(peer) == []  # it is buried again, which is told to have failed
    site.turn()
    failed = site.engine.failed
    site.engine.failures = 0.0
    site.now_ms += STORING_MS
    site.turn()
    assert pop(peer) == []
    site.now_ms += STORING_MS
    site.turn()
    assert pop(peer) == []
    assert {letter.body for letter in records_of(peer.pull("%DLQ%g"))} == {b"bad"}
    assert failed <= 1
    site.close()
