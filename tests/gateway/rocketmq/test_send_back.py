from __future__ import annotations

import json

import pytest

from gateway.rocketmq.errors import CommandRefusedError
from lmq.remoting.commands import Command, encode_command
from tests.support.rocketmq_door import DoorSite, bodies_of, records_of

OLD_CLIENT = 100


def offset_of(answer: Command) -> int:
    return int(answer.ext["msgId"][16:], 16)


def send_back(peer, offset: int, level: int = 0, group: str = "g", **more: object) -> Command:
    """Send a message back as the Java client does."""
    ext = {"offset": offset, "group": group, "delayLevel": level, "originMsgId": "k", "originTopic": "T"}
    return peer.ask(36, **(ext | {"unitMode": "false", "maxReconsumeTimes": 16} | more))


def wait(site: DoorSite, seconds: float) -> None:
    site.now_ms += int(seconds * 1000)
    site.turn()


def test_a_message_that_is_sent_back_comes_again_on_the_groups_retry_topic(site, peer):
    sent = peer.send(b"bad", properties="UNIQ_KEY\x01k\x02TAGS\x01t\x02")
    assert send_back(peer, offset_of(sent), 1).code == 0
    assert peer.pull("%RETRY%g").code == 19
    wait(site, 1)
    (record,) = records_of(peer.pull("%RETRY%g"))
    assert (record.topic, record.body, record.reconsume_times, record.queue_id) == (b"%RETRY%g", b"bad", 1, 0)
    assert record.properties.pop(b"__CRC32#")
    assert record.properties == {  # as the official broker's
        b"REAL_TOPIC": b"%RETRY%g",
        b"REAL_QID": b"0",
        b"UNIQ_KEY": b"k",
        b"TAGS": b"t",
        b"RETRY_TOPIC": b"T",
        b"ORIGIN_MESSAGE_ID": sent.ext["msgId"].encode(),
        b"WAIT": b"false",
        b"DELAY": b"1",
    }
    assert bodies_of(peer.pull("T")) == [b"bad"]


def test_a_message_comes_later_each_time_and_then_to_the_dead_letters(site, peer):
    offset = offset_of(peer.send(b"bad", properties="UNIQ_KEY\x01k\x02"))
    first_id = None
    for attempt, seconds in enumerate((10, 30, 60)):
        assert send_back(peer, offset, maxReconsumeTimes=3).code == 0
        wait(site, seconds - 0.001)
        assert peer.pull("%RETRY%g", attempt).code == 19
        wait(site, 0.001)
        (record,) = records_of(peer.pull("%RETRY%g", attempt))
        assert record.reconsume_times == attempt + 1
        assert record.properties[b"RETRY_TOPIC"] == b"T"
        first_id = first_id or record.properties[b"ORIGIN_MESSAGE_ID"]
        assert record.properties[b"ORIGIN_MESSAGE_ID"] == first_id
        offset = record.physical_offset
    assert send_back(peer, offset, maxReconsumeTimes=3).code == 0
    (dead,) = records_of(peer.pull("%DLQ%g"))
    assert (dead.body, dead.reconsume_times, dead.properties[b"DELAY"]) == (b"bad", 4, b"0")
    assert json.loads(bytes(peer.ask(105, topic="%DLQ%g").body))["queueDatas"][0]["perm"] == 6


def test_a_negative_level_goes_to_the_dead_letters_at_once(site, peer):
    send_back(peer, offset_of(peer.send(b"bad")), -1)
    assert bodies_of(peer.pull("%DLQ%g")) == [b"bad"]


def test_clients_that_name_no_limit_have_16_attempts(site, peer):
    assert send_back(peer, offset_of(peer.send(b"15", j="15")), maxReconsumeTimes="16").code == 0
    ext = {"group": "g", "delayLevel": "0", "maxReconsumeTimes": "99"}
    for attempts in ("15", "16"):
        offset = offset_of(peer.send(attempts.encode(), j=attempts))
        peer.give(encode_command(Command(36, 7, ext=ext | {"offset": str(offset)}, version=OLD_CLIENT)))
        site.turn()
        assert [answer.code for answer in peer.take()] == [0]
    assert bodies_of(peer.pull("%DLQ%g")) == [b"16"]


def test_the_answer_comes_when_the_copy_is_safe(site, peer):
    offset = offset_of(peer.send(b"bad"))
    ext = {"offset": str(offset), "group": "g", "delayLevel": "1"}
    peer.give(encode_command(Command(36, 9, ext=ext)))
    assert peer.take() == []
    site.turn()
    assert [answer.opaque for answer in peer.take()] == [9]
    peer.give(encode_command(Command(36, 10, 2, ext=ext)))  # one-way
    site.turn()
    assert peer.take() == []


def test_a_compressed_body_stays_compressed(site, peer):
    send_back(peer, offset_of(peer.send(b"\x78\x9c not for us to read", f="769")), -1)
    assert peer.pull("%DLQ%g").body.count(b"not for us to read") == 1


def test_a_message_of_light_queues_goes_back_to_the_group_alone(site, peer):
    peer.send(b"bad", properties="INNER_MULTI_DISPATCH\x01%LMQ%a,%LMQ%b\x02")
    (record,) = records_of(peer.pull("%LMQ%a"))
    send_back(peer, record.physical_offset, 1)
    wait(site, 1)
    (again,) = records_of(peer.pull("%RETRY%g"))
    assert b"INNER_MULTI_DISPATCH" not in again.properties
    assert bodies_of(peer.pull("%LMQ%a")) == [b"bad"]


@pytest.mark.parametrize(
    ("changes", "code"),
    [({"offset": 1}, 1), ({"offset": -1}, 1), ({"offset": 1 << 40}, 1), ({"group": "g h"}, 26), ({"group": ""}, 26)]
    + [({"level": "x"}, 1)],
)
def test_what_cannot_be_sent_back_is_refused(site, peer, changes, code):
    offset = offset_of(peer.send(b"bad"))
    assert send_back(peer, **({"offset": offset} | changes)).code == code
    assert peer.pull("%DLQ%g").code == 17


def test_nothing_is_sent_back_while_the_disk_is_low(site, peer):
    offset = offset_of(peer.send(b"bad"))
    site.set_free(0)
    assert send_back(peer, offset).code == 2


class Stranger:
    """A client that may read nothing."""

    def __init__(self) -> None:
        self.refusals: list[int] = []

    def may_read_record(self, _record) -> bool:
        return False

    def settle(self, _request, work) -> None:
        with pytest.raises(CommandRefusedError) as caught:
            work()
        self.refusals.append(caught.value.code)


def test_what_may_not_be_read_may_not_be_sent_back(site, peer):
    offset = offset_of(peer.send(b"secret"))
    stranger = Stranger()
    ext = {"offset": str(offset), "group": "g", "delayLevel": "-1"}
    site.door.backs.send_back(Command(36, ext=ext), stranger, site.now_ms)
    site.turn()
    assert stranger.refusals == [16]
    assert peer.pull("%DLQ%g").code == 17


# What clients send to retry topics by themselves


def test_a_spent_message_that_a_client_sends_to_its_retry_topic_is_a_dead_letter(site, peer):
    peer.send(b"again", topic="%RETRY%g", j="16", l="16", properties="DELAY\x011\x02RETRY_TOPIC\x01T\x02")
    peer.send(b"spent", topic="%RETRY%g", j="17", l="16", properties="DELAY\x011\x02RETRY_TOPIC\x01T\x02")
    assert bodies_of(peer.pull("%DLQ%g")) == [b"spent"]
    wait(site, 1)
    assert bodies_of(peer.pull("%RETRY%g")) == [b"again"]


def test_a_message_of_a_group_that_consumes_in_order_is_a_dead_letter_when_it_is_sent_back(site, peer):
    said = {"consumerGroup": "g", "clientId": "c", "mqSet": [{"topic": "T", "brokerName": "b", "queueId": 0}]}
    peer.ask(41, json.dumps(said).encode())
    peer.send(b"dead", topic="%RETRY%g", j="1", l="16", properties="DELAY\x011\x02")
    assert bodies_of(peer.pull("%DLQ%g")) == [b"dead"]
    peer.ask(42, json.dumps(said).encode())
    peer.send(b"again", topic="%RETRY%g", j="1", l="16", properties="DELAY\x011\x02")
    wait(site, 1)
    assert bodies_of(peer.pull("%RETRY%g")) == [b"again"]


def test_a_retry_goes_to_no_light_queue_again(site, peer):
    peer.send(b"again", topic="%RETRY%g", properties="INNER_MULTI_DISPATCH\x01%LMQ%a\x02")
    assert bodies_of(peer.pull("%RETRY%g")) == [b"again"]
    assert peer.pull("%LMQ%a").code == 19


def dead_record(site, peer, **changes) -> bytes:
    """Return the record of a message that was given up."""
    send_back(peer, offset_of(peer.send(b"bad", **changes)), -1)
    return bytes(peer.pull("%DLQ%g").body)


def test_a_dead_letter_comes_to_its_group_again_as_if_it_had_never_failed(site, peer):
    sent = peer.send(b"bad", properties="UNIQ_KEY\x01k\x02TAGS\x01t\x02KEYS\x01a b\x02", j=7)
    send_back(peer, offset_of(sent), -1)
    site.door.backs.revive(bytes(peer.pull("%DLQ%g").body), b"g", site.now_ms)
    site.turn()
    (again,) = records_of(peer.pull("%RETRY%g"))
    assert (again.body, again.reconsume_times) == (b"bad", 0)
    assert again.properties.pop(b"__CRC32#")
    assert again.properties == {
        b"UNIQ_KEY": b"k",
        b"TAGS": b"t",
        b"KEYS": b"a b",
        b"RETRY_TOPIC": b"T",
        b"ORIGIN_MESSAGE_ID": sent.ext["msgId"].encode(),
        b"WAIT": b"false",
        b"DELAY": b"0",
    }
    assert send_back(peer, again.physical_offset, 1, maxReconsumeTimes=1).code == 0  # it may fail as often as any other
    wait(site, 1)
    assert [record.reconsume_times for record in records_of(peer.pull("%RETRY%g", 1))] == [1]


def test_a_dead_letter_goes_to_all_groups_of_a_topic_where_that_is_wanted(site, peer):
    peer.send(b"first", topic="Other")
    site.door.backs.resend(dead_record(site, peer), b"Other", site.now_ms)
    site.turn()
    found = [
        record
        for queue_id in range(site.door.topics.get(b"Other").write_queues)
        for record in records_of(peer.pull("Other", queueId=queue_id))
    ]
    (again,) = [record for record in found if record.body == b"bad"]
    assert again.reconsume_times == 0
    assert b"RETRY_TOPIC" not in again.properties
    assert b"ORIGIN_MESSAGE_ID" in again.properties
    assert peer.pull("%RETRY%g").code == 19


@pytest.mark.parametrize("target", ["%RETRY%g", "%RETRY%other", "%DLQ%other"])
def test_a_dead_letter_keeps_its_topic_where_a_topic_of_a_group_is_named(site, peer, target):
    record = dead_record(site, peer)
    other = offset_of(peer.send(b"another"))
    for level in (-1, 1):
        send_back(peer, other, level, "other")
        send_back(peer, other, level)
    wait(site, 1)
    site.door.backs.resend(record, target.encode(), site.now_ms)
    site.turn()
    again = [one for one in records_of(peer.pull(target)) if one.body == b"bad"]
    assert [(one.properties[b"RETRY_TOPIC"], one.reconsume_times) for one in again] == [(b"T", 0)]


def test_no_dead_letter_is_sent_back_while_the_disk_is_low(site, peer):
    record = dead_record(site, peer)
    site.set_free(0)
    with pytest.raises(CommandRefusedError, match="low on"):
        site.door.backs.revive(record, b"g", site.now_ms)
    with pytest.raises(CommandRefusedError, match="low on"):
        site.door.backs.resend(record, b"T", site.now_ms)
