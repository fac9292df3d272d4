from __future__ import annotations

import shutil
from functools import partial

import pytest

from gateway.rocketmq.delay import COUNT_MAX
from gateway.settings.delay_levels import DEFAULT_LEVELS, parse_delay_levels
from gateway.settings.models import GatewaySettings, RocketmqSettings
from lmq.remoting.message_codec import BatchItem, encode_batch
from tests.support.late_engine import make_late
from tests.support.rocketmq import send_ext, send_frame
from tests.support.rocketmq_door import DoorSite, bodies_of, records_of


def delayed(level: int = 1, **more: str) -> str:
    return "".join(f"{name}\x01{value}\x02" for name, value in {"UNIQ_KEY": "k", "DELAY": str(level), **more}.items())


def wait(site: DoorSite, seconds: float) -> None:
    """Let time go by, and a turn of the loop come."""
    site.now_ms += int(seconds * 1000)
    site.turn()


def test_a_delayed_message_comes_when_its_level_says_so_and_not_before(site, peer):
    answer = peer.send(b"later", e="2", properties=delayed(2, a="b"), j="1")
    assert (answer.code, answer.ext["queueId"], answer.ext["transactionId"]) == (0, "2", "k")
    wait(site, 4.999)
    assert peer.pull("T", queueId=2).code == 19
    wait(site, 0.001)
    (record,) = records_of(peer.pull("T", queueId=2))
    assert (record.body, record.queue_id, record.queue_offset, record.reconsume_times) == (b"later", 2, 0, 1)
    assert record.store_ms == record.born_ms + 5000 == site.now_ms
    assert record.properties.pop(b"__CRC32#")
    assert record.properties == {  # as the official broker leaves them
        b"REAL_TOPIC": b"T",
        b"REAL_QID": b"2",
        b"UNIQ_KEY": b"k",
        b"DELAY": b"2",
        b"a": b"b",
    }


def test_what_waits_lies_where_the_official_broker_looks_for_it(site, peer):
    sent = peer.send(b"later", e="3", properties=delayed(99))
    assert peer.pull("SCHEDULE_TOPIC_XXXX").code == 17  # it is nobody's to read
    (record,) = records_of(peer.ask(33, topic="T", offset=int(sent.ext["msgId"][16:], 16)))
    assert (record.topic, record.queue_id, record.queue_offset) == (b"SCHEDULE_TOPIC_XXXX", 17, 0)
    assert (record.properties[b"REAL_TOPIC"], record.properties[b"REAL_QID"]) == (b"T", b"3")


def test_an_alarm_is_asked_for_at_the_moment_and_brings_the_message(site, peer, monkeypatch):
    wakes = []
    site.broker.timer.wake_at = wakes.append
    peer.send(b"later", properties=delayed(1))
    for _ in range(5):
        site.turn()
    assert wakes[-1] == site.now_ms + 1_000
    monkeypatch.setattr(site.door.delays, "deliver_due", lambda now_ms: None)
    site.now_ms += 1_000
    for _ in range(5):
        site.broker.timer.ring()
        site.turn()
    assert bodies_of(peer.pull("T")) == [b"later"]


@pytest.mark.parametrize("level", range(1, 19))
def test_each_level_waits_as_long_as_the_official_brokers(site, peer, level):
    peer.send(b"later", properties=delayed(level))
    wait(site, parse_delay_levels(DEFAULT_LEVELS)[level - 1] / 1000 - 0.001)
    assert peer.pull("T").code == 19
    wait(site, 0.001)
    assert bodies_of(peer.pull("T")) == [b"later"]


def set_levels(site: DoorSite, levels: str) -> None:
    site.door.reload(GatewaySettings(rocketmq=RocketmqSettings(delay_levels=levels)))
    site.turn()


def test_levels_are_as_the_settings_say_and_beyond_the_last_is_the_last(tmp_path, engine_maker):
    site = DoorSite(tmp_path / "d", RocketmqSettings(delay_levels="2s 3s"), make_engine=engine_maker)
    peer = site.connect()
    for level in (1, 2, 3, 18, 250):
        peer.send(b"%d" % level, properties=delayed(level))
    wait(site, 1.999)
    assert peer.pull("T").code == 19
    wait(site, 0.001)
    assert bodies_of(peer.pull("T")) == [b"1"]
    wait(site, 1)
    assert bodies_of(peer.pull("T")) == [b"1", b"2", b"3", b"18", b"250"]
    site.close()


def test_what_waits_goes_by_the_levels_as_they_are_set(site, peer):
    peer.send(b"sooner", properties=delayed(14))
    peer.send(b"later", properties=delayed(1))
    wait(site, 0.5)
    set_levels(site, "3s " * 13 + "2s")
    wait(site, 1.499)
    assert peer.pull("T").code == 19
    wait(site, 0.001)
    assert bodies_of(peer.pull("T")) == [b"sooner"]
    wait(site, 1)
    assert bodies_of(peer.pull("T")) == [b"sooner", b"later"]


def test_what_waits_on_a_level_that_is_no_more_waits_as_long_as_the_last(site, peer):
    peer.send(b"of 18", properties=delayed(18))
    set_levels(site, "1s 4s")
    peer.send(b"of 2", properties=delayed(18))
    wait(site, 3.999)
    assert peer.pull("T").code == 19
    wait(site, 0.001)
    assert sorted(bodies_of(peer.pull("T"))) == [b"of 18", b"of 2"]


def test_a_level_that_comes_again_waits_its_own_time_again(site, peer):
    peer.send(b"a", properties=delayed(3))
    set_levels(site, "1s")
    peer.send(b"b", properties=delayed(3))
    wait(site, 1)
    assert sorted(bodies_of(peer.pull("T"))) == [b"a", b"b"]
    set_levels(site, "1s 5s 10s")
    peer.send(b"c", properties=delayed(3))
    wait(site, 9.999)
    assert len(bodies_of(peer.pull("T"))) == 2
    wait(site, 0.001)
    assert bodies_of(peer.pull("T", 2)) == [b"c"]


def test_what_waited_when_levels_were_taken_away_comes_after_a_start_too(tmp_path, engine_maker):
    site = DoorSite(tmp_path / "d", make_engine=engine_maker)
    site.connect().send(b"of 18", properties=delayed(18))
    site.turn()
    site.close()
    site = DoorSite(tmp_path / "d", RocketmqSettings(delay_levels="7s"), make_engine=engine_maker)
    peer = site.connect()
    site.turn()
    wait(site, 6.999)
    assert peer.pull("T").code == 19
    wait(site, 0.001)
    assert bodies_of(peer.pull("T")) == [b"of 18"]
    site.close()


def test_levels_0_and_below_are_no_delay(site, peer):
    for level in (0, -1):
        peer.send(b"now", properties=delayed(level))
    assert bodies_of(peer.pull("T")) == [b"now", b"now"]


def test_a_sender_that_leaves_the_queue_to_us_is_told_it_and_the_message_comes_there(site, peer):
    queue_id = int(peer.send(b"later", e="-1", properties=delayed(1)).ext["queueId"])
    assert 0 <= queue_id < 4
    wait(site, 1)
    assert bodies_of(peer.pull("T", queueId=queue_id)) == [b"later"]


def test_a_held_pull_is_answered_when_a_delayed_message_comes(site, peer):
    peer.send(b"later", properties=delayed(1))
    peer.start_pull("T", sysFlag=6)
    assert peer.take() == []
    wait(site, 1)
    (answer,) = peer.take()
    assert bodies_of(answer) == [b"later"]


def test_light_queues_get_a_delayed_message_when_it_comes(site, peer):
    peer.send(b"both", properties=delayed(1, INNER_MULTI_DISPATCH="%LMQ%a,%LMQ%b"))
    peer.send(b"alone", topic="%LMQ%a", properties=delayed(1))
    assert [peer.pull(queue).code for queue in ("T", "%LMQ%a", "%LMQ%b")] == [19, 19, 19]
    wait(site, 1)
    assert bodies_of(peer.pull("T")) == [b"both"]
    assert bodies_of(peer.pull("%LMQ%a")) == [b"both", b"alone"]
    (record,) = records_of(peer.pull("%LMQ%b"))
    assert record.light_offset(b"%LMQ%b") == 0
    assert b"LMQ_LATER" not in record.properties


def test_a_producer_cannot_send_by_delay_where_it_may_not_send(site, peer):
    forged = delayed(1, REAL_TOPIC="Other", REAL_QID="0", LMQ_LATER="%LMQ%x")
    peer.send(b"later", properties=forged)
    peer.send(b"first", topic="Other")
    wait(site, 1)
    assert bodies_of(peer.pull("T")) == [b"later"]
    assert bodies_of(peer.pull("Other")) == [b"first"]
    assert peer.pull("%LMQ%x").code == 19


def test_messages_of_many_producers_come_in_their_order_each_from_its_own_host(site, peer):
    other = site.connect(bytes(range(20)))
    for number in range(6):
        (peer if number % 3 else other).send(b"%d" % number, properties=delayed(1))
    wait(site, 1)
    records = records_of(peer.pull("T"))
    assert [record.body for record in records] == [b"%d" % number for number in range(6)]
    assert [record.born_host == bytes(range(20)) for record in records] == [True, False, False] * 2


def test_more_than_a_batch_goes_on_in_the_turns_that_follow(site, peer):
    total = 3 * COUNT_MAX + 1
    peer.give(b"".join(send_frame(b"%d" % number, properties=delayed(1)) for number in range(total)))
    site.turn()
    wait(site, 1)
    site.turn()
    peer.take()
    assert site.store.max_offset(site.broker.find_queue(b"T/0")) == total
    assert bodies_of(peer.pull("T", total - 1)) == [b"%d" % (total - 1)]


@pytest.mark.here(reason="counts what two steps hand on")
def test_a_level_with_much_to_do_leaves_others_their_turn(site, peer):
    for level in (1, 2):
        peer.give(b"".join(send_frame(b"x", e=str(level), properties=delayed(level)) for _ in range(2 * COUNT_MAX)))
    site.turn()
    peer.take()
    site.now_ms += 5000
    for _ in range(2):
        site.door.delays.on_ready(site.now_ms)
    ends = [site.store.max_offset(site.broker.find_queue(key)) for key in (b"T/1", b"T/2")]
    assert ends == [COUNT_MAX, COUNT_MAX]


def test_messages_of_one_batch_cannot_be_delayed(peer):
    body = encode_batch([BatchItem(0, b"a", b""), BatchItem(0, b"b", b"DELAY\x011\x02")])
    assert peer.ask(320, body, **send_ext(m="true")).code == 13


def test_what_waits_is_there_after_a_restart_and_what_came_does_not_come_again(tmp_path, engine_maker):
    site = DoorSite(tmp_path / "d", make_engine=engine_maker)
    peer = site.connect()
    peer.send(b"first", properties=delayed(1))
    wait(site, 1)
    peer.send(b"second", properties=delayed(1))
    site.turn()
    site.close()
    shutil.rmtree(tmp_path / "d" / "index")
    now_ms = site.now_ms
    site = DoorSite(tmp_path / "d", make_engine=engine_maker)
    site.now_ms = now_ms
    site.turn()
    peer = site.connect()
    assert bodies_of(peer.pull("T")) == [b"first"]
    wait(site, 1)
    assert bodies_of(peer.pull("T")) == [b"first", b"second"]
    site.close()


def test_a_message_that_was_handed_on_and_not_synced_is_handed_on_again(site, peer):
    peer.send(b"later", properties=delayed(1))
    place = (b"CID_RMQ_SYS_SCHEDULE", b"SCHEDULE_TOPIC_XXXX/0")
    site.now_ms += 1000
    site.door.delays.deliver_due(site.now_ms)
    assert not site.broker.consumer_offsets.get(*place)
    site.turn()
    assert site.broker.consumer_offsets.get(*place) == 1


def test_messages_of_a_clock_that_was_ahead_come_after_their_delay(tmp_path, engine_maker):
    site = DoorSite(tmp_path / "d", make_engine=engine_maker)
    site.now_ms += 3_600_000
    for body in (b"1", b"2"):
        site.connect().send(body, properties=delayed(3))
    site.close()
    site = DoorSite(tmp_path / "d", make_engine=engine_maker)  # the clock was set
    peer = site.connect()
    site.turn()
    wait(site, 9)
    assert peer.pull("T").code == 19
    wait(site, 1)
    assert bodies_of(peer.pull("T")) == [b"1", b"2"]
    site.close()


def test_nothing_is_handed_on_while_the_disk_is_low(site, peer):
    peer.send(b"later", properties=delayed(1))
    site.set_free(0)
    wait(site, 1)
    assert peer.pull("T").code == 19
    site.set_free(1 << 40)
    site.turn()
    assert bodies_of(peer.pull("T")) == [b"later"]


@pytest.mark.parametrize("seed", range(3))
def test_a_level_whose_queue_could_not_be_opened_is_opened_later(tmp_path, seed):
    site = DoorSite(tmp_path / "d", make_engine=partial(make_late, unknown=0.8, seed=seed))
    site.connect().send(b"later", properties=delayed(1))
    for _ in range(50):
        wait(site, 1)
    site.engine.unknown = 0.0
    wait(site, 1)
    assert bodies_of(site.connect().pull("T")) == [b"later"]
    site.close()


def test_retention_leaves_what_waits(site, peer):
    peer.send(b"later", properties=delayed(1))
    site.turn()
    ref = site.broker.find_queue(b"SCHEDULE_TOPIC_XXXX/0")
    assert list(site.door.delays.positions()) == [(ref, 0)]
    wait(site, 1)
    assert list(site.door.delays.positions()) == [(ref, 1)]


def test_a_message_that_no_record_can_hold_when_it_comes_stops_no_other(site, peer):
    names = ",".join(f"%LMQ%{number:0120d}" for number in range(240))
    answer = peer.send(b"large", properties=delayed(1, INNER_MULTI_DISPATCH=names))
    peer.send(b"small", properties=delayed(1))
    wait(site, 1)
    found = bodies_of(peer.pull("T"))
    assert found[-1] == b"small"
    assert (len(found) == 2) == (answer.code == 0)


@pytest.mark.parametrize("name", ["DELAY", "TIMER_DELAY_SEC", "TIMER_DELIVER_MS"])
@pytest.mark.parametrize("form", ["{}\x01\x02a\x01b\x02", "a\x01b\x02{}\x01"])
def test_a_delay_without_a_value_is_none_as_at_official_brokers(peer, name, form):
    assert peer.send(b"now", properties=form.format(name)).code == 0
    (record,) = records_of(peer.pull("T"))
    assert record.body == b"now"
    assert record.properties[b"a"] == b"b"
    assert name.encode() not in record.properties
